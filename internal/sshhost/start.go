package sshhost

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// abandonGrace is how long Start waits, after its ctx has ended, until the attempt is undone. If
// that takes longer, Start aborts the attempt and returns.
const abandonGrace = time.Second

// Start implements shellbox.Host. It starts a program on its own channel. That takes two round
// trips and the login shell's start.
//
// Errors about the directory and the program are *fs.PathError. Start checks only that the program
// exists and is executable. If the interpreter of a script does not exist, the script starts, and
// ends with the shell's message and status 126 or 127.
func (h *Host) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	mark := make([]byte, 16)
	rand.Read(mark)
	a := &attempt{host: h, program: p, mark: hex.EncodeToString(mark)}
	env := p.Env
	if !p.ReplaceEnv {
		env = slices.Concat(h.env, env)
	}
	if err := checkProgram(p, env); err != nil {
		return nil, err
	}

	started := make(chan *process)
	failed := make(chan error, 1)
	abandoned, undone := make(chan struct{}), make(chan struct{})
	if !h.starts.Run(func() {
		defer close(undone)
		proc, err := a.start(ctx, env)
		if err != nil {
			failed <- err
			return
		}
		select {
		case started <- proc:
		case <-abandoned:
			a.kill(proc)
		}
	}) {
		return nil, sandbox.ErrClosed
	}
	select {
	case proc := <-started:
		return proc, nil
	case err := <-failed:
		return nil, h.explain(ctx, err)
	case <-ctx.Done():
	}
	close(abandoned)
	late := make(chan struct{})
	timer := time.AfterFunc(abandonGrace, func() {
		close(late)
		a.abort() // may block on a stalled connection
	})
	select {
	case <-undone:
		timer.Stop()
	case <-late:
	}
	return nil, fmt.Errorf("start %q: %w", p.Args[0], ctxerr.Of(ctx))
}

// An attempt is one call of Start.
type attempt struct {
	host    *Host
	program shellbox.Program
	mark    string

	mu      sync.Mutex
	proc    *process
	feeding *feeding // of the FIFO of commands; nil if there is none, or none yet
	aborted bool
}

func (a *attempt) start(ctx context.Context, env []string) (proc *process, err error) {
	var fifo string
	if t := a.program.Terminal; t != nil && t.Commands {
		a.use(a.host.takeFeeder())
		fifo = a.feeding.name()
		defer func() {
			if err != nil && a.feeding != nil {
				a.feeding.drop()
			}
		}()
	}
	cmd, err := makeCommand(a.program, env, a.mark, fifo)
	if err != nil {
		return nil, err
	}
	s, err := a.host.session(ctx)
	if err != nil {
		return nil, err
	}
	proc = newProcess(s, a.program)
	a.mu.Lock()
	if a.proc = proc; a.aborted {
		proc.Close()
	}
	a.mu.Unlock()
	if err := a.exec(ctx, s, proc, cmd, termOf(env)); err != nil {
		proc.Close()
		return nil, err
	}
	if proc.feeder != nil {
		a.host.prepareFeeder()
	}
	return proc, nil
}

// use makes f the shell's feeder.
func (a *attempt) use(f *feeding) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.feeding = f; f != nil && a.aborted {
		f.cancel()
	}
}

func (a *attempt) exec(ctx context.Context, s *session, proc *process, cmd command,
	term string) error {
	name := a.program.Args[0]
	if t := a.program.Terminal; t != nil && t.Commands && a.feeding == nil {
		a.use(a.host.feedSoon(ctx))
	}
	if t := a.program.Terminal; t != nil {
		// This asks for no answer, which would cost a round trip. The script checks that there is
		// a terminal.
		if _, err := s.SendRequest("pty-req", false, ssh.Marshal(&ptyRequest{
			Term: term, Cols: uint32(t.Cols), Rows: uint32(t.Rows), Modes: terminalModes,
		})); err != nil {
			return fmt.Errorf("start %q: %w", name, err)
		}
	}
	ok, err := s.SendRequest("exec", true, ssh.Marshal(&struct{ Command string }{cmd.line}))
	if err != nil {
		return fmt.Errorf("start %q: %w", name, err)
	}
	if !ok {
		return fmt.Errorf("start %q: the server refuses to execute commands", name)
	}
	if sshconn.KnowsCredit(string(s.on.Client.ServerVersion())) {
		proc.Credit = sshconn.FirstCredit
	}
	if cmd.input != "" {
		if _, err := io.WriteString(proc, cmd.input); err != nil {
			return fmt.Errorf("start %q: %w", name, err)
		}
	}
	line, err := a.answer(proc)
	if err == nil && line == wantFIFO && a.feeding != nil {
		line, err = a.nameFIFO(ctx, cmd, proc)
	}
	if err != nil {
		return fmt.Errorf("start %q: %w", name, err)
	}
	if proc.pid, err = strconv.Atoi(line); err != nil {
		return a.answerError(line)
	}
	if a.feeding != nil {
		proc.feeder = a.feeding.feeder
		io.WriteString(proc.feeder, "\n") // if this fails, the feeder has ended
	}
	if a.program.Terminal == nil {
		proc.stderr = wholeReader{&afterMark{r: proc.Err, mark: []byte("\x1e" + a.mark)}, proc.on}
	}
	return nil
}

// answer returns the script's next line.
func (a *attempt) answer(proc *process) (string, error) {
	over := make(chan struct{})
	defer close(over)
	if a.feeding != nil {
		a.feeding.guard(proc, over)
	}
	line, dropped, err := proc.Out.SkipPast([]byte("\x1e" + a.mark + " "))
	if err == nil {
		return string(line), nil
	}
	if a.feeding != nil && !errors.Is(err, io.EOF) {
		if failed := a.feeding.failure(); failed != nil {
			return "", failed
		}
	}
	return "", proc.silentError(dropped, err)
}

// nameFIFO gives the script the name of the FIFO of commands, and returns its next line.
func (a *attempt) nameFIFO(ctx context.Context, cmd command, proc *process) (line string,
	err error) {
	if cmd.fifo != "" { // it is not there: something has removed it
		a.feeding.drop()
		a.use(a.host.feedSoon(ctx))
	}
	if <-a.feeding.done; a.feeding.err != nil {
		return "", a.feeding.failure()
	}
	if _, err := io.WriteString(proc, a.feeding.fifo+"\n"); err != nil {
		return "", err
	}
	return a.answer(proc)
}

// ptyRequest is the payload of a pty-req: RFC 4254, section 6.2. Width and Height are in pixels; 0
// means unknown.
type ptyRequest struct {
	Term                      string
	Cols, Rows, Width, Height uint32
	Modes                     string
}

// terminalModes are the modes that differ from the server's defaults (RFC 4254, section 8). ECHO is
// on. ONLCR is off: it costs a byte a line, and on OpenSSH three quarters of the speed. ECHOCTL is
// off, so that the output does not show the interrupt key as ^C. IUTF8 is on, so that erasing takes
// whole characters.
var terminalModes = string([]byte{
	ssh.ECHO, 0, 0, 0, 1,
	ssh.ONLCR, 0, 0, 0, 0,
	ssh.ECHOCTL, 0, 0, 0, 0,
	42 /* IUTF8, RFC 8160 */, 0, 0, 0, 1,
	0, // TTY_OP_END
})

// termOf returns the value of TERM in env; "xterm" if there is none.
func termOf(env []string) string {
	term := "xterm"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "TERM="); ok && v != "" {
			term = v
		}
	}
	return term
}

// answerError returns the error that the script has reported.
func (a *attempt) answerError(code string) error {
	dir := func(err error) error {
		return &fs.PathError{Op: "chdir", Path: a.program.Dir, Err: err}
	}
	program := func(err error) error {
		return &fs.PathError{Op: "exec", Path: a.program.Args[0], Err: err}
	}
	switch code {
	case noDirectory:
		return dir(syscall.ENOENT)
	case noPermission:
		return dir(syscall.EACCES)
	case notADirectory:
		return dir(syscall.ENOTDIR)
	case noProgram:
		return program(notFound{})
	case notExecutable:
		return program(syscall.EACCES)
	case programIsDirectory:
		return program(isDirectory{})
	case noTerminal:
		return fmt.Errorf("start %q: the server gives no terminal: check PermitTTY in its "+
			"sshd_config, and that it has free pseudo-terminals", a.program.Args[0])
	case lostFIFO:
		return fmt.Errorf("start %q: the FIFO of its commands, which another session has made in "+
			"$TMPDIR or /tmp, is not there: do all sessions see the same files?", a.program.Args[0])
	case otherUser:
		return fmt.Errorf("start %q as %s: %w over a plain sshd: log in as that user",
			a.program.Args[0], a.program.User, errors.ErrUnsupported)
	}
	return fmt.Errorf("start %q: unexpected answer %q", a.program.Args[0], code)
}

// notFound is the error for a program that does not exist. It is both exec.ErrNotFound and
// fs.ErrNotExist.
type notFound struct{}

func (notFound) Error() string { return "executable file not found" }
func (notFound) Is(target error) bool {
	return target == exec.ErrNotFound || target == fs.ErrNotExist
}

// isDirectory is the error for executing a directory: EACCES with a text that helps.
type isDirectory struct{}

func (isDirectory) Error() string { return "is a directory" }
func (isDirectory) Unwrap() error { return syscall.EACCES }

// silentError returns the error for a channel that ended before the script answered. The usual
// reason is a login shell that does not execute commands.
func (p *process) silentError(dropped []byte, err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(time.Second):
	}
	status, werr := p.Wait()
	if werr != nil {
		return werr
	}
	said, _ := bounded.ReadAll(p.Err, "its standard error", 4<<10)
	said = append(dropped, said...)
	return fmt.Errorf("the user's login shell ended with status %d and executed nothing: %q: "+
		"check that the account is allowed to log in",
		status.Code, strings.TrimSpace(string(said)))
}

// abort ends the attempt at whatever stage it is. A shell that answers later finds its output
// closed, and ends.
func (a *attempt) abort() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.aborted = true
	if a.proc != nil {
		a.proc.Stream.Close()
	}
	if a.feeding != nil {
		a.feeding.cancel()
	}
}

// kill kills a program whose Start has been abandoned, and its process group.
func (a *attempt) kill(proc *process) {
	defer proc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s, err := a.host.session(ctx)
	if err != nil {
		return
	}
	killer := newProcess(s, shellbox.Program{})
	defer killer.Close()
	line := fmt.Sprintf("exec /bin/sh -c 'kill -KILL -%d; kill -KILL %d'", proc.pid, proc.pid)
	if ok, err := s.SendRequest("exec", true, ssh.Marshal(
		&struct{ Command string }{line})); err != nil || !ok {
		return
	}
	select {
	case <-killer.ended:
	case <-ctx.Done():
	}
	select {
	case <-proc.ended:
	case <-ctx.Done():
	}
}
