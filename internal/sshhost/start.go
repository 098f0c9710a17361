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

// abandonGrace is how long Start waits, after its ctx has ended, until what it has begun is undone.
// If that takes longer, it is undone later.
const abandonGrace = time.Second

// Start implements shellbox.Host. It starts a program on a channel of its own, which takes two
// round trips and the login shell's start.
//
// Errors about the directory and the program are *fs.PathError. Start checks only that the program
// exists and is executable. A script without its interpreter starts, and ends with the shell's
// message and status 126 or 127.
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
	cmd, err := makeCommand(p, env, a.mark)
	if err != nil {
		return nil, err
	}

	started := make(chan *process)
	failed := make(chan error, 1)
	abandoned, undone := make(chan struct{}), make(chan struct{})
	if !h.starts.Run(func() {
		defer close(undone)
		proc, err := a.start(ctx, cmd, termOf(env))
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
	timer := time.AfterFunc(abandonGrace, a.abort)
	defer timer.Stop()
	select {
	case <-undone:
	case <-time.After(abandonGrace):
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
	feeder  *process // of the pipe of commands; nil if there is none, or not yet
	aborted bool
}

func (a *attempt) start(ctx context.Context, cmd command, term string) (*process, error) {
	s, err := a.host.session(ctx)
	if err != nil {
		return nil, err
	}
	proc := newProcess(s, a.program)
	a.mu.Lock()
	if a.proc = proc; a.aborted {
		proc.Close()
	}
	a.mu.Unlock()
	if err := a.exec(ctx, s, proc, cmd, term); err != nil {
		proc.Close()
		return nil, err
	}
	return proc, nil
}

func (a *attempt) exec(ctx context.Context, s *session, proc *process, cmd command,
	term string) error {
	name := a.program.Args[0]
	if t := a.program.Terminal; t != nil {
		// Not worth a round trip of its own: the script sees whether there is a terminal.
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
	line, dropped, err := proc.Out.SkipPast([]byte("\x1e" + a.mark + " "))
	if err != nil {
		return fmt.Errorf("start %q: %w", name, a.silentError(proc, dropped, err))
	}
	if fifo, ok := strings.CutPrefix(string(line), "fifo "); ok {
		if line, err = a.connectFeeder(ctx, proc, fifo); err != nil {
			return fmt.Errorf("start %q: %w", name, err)
		}
	}
	if proc.pid, err = strconv.Atoi(string(line)); err != nil {
		return a.answerError(string(line))
	}
	if a.program.Terminal == nil {
		proc.stderr = wholeReader{&afterMark{r: proc.Err, mark: []byte("\x1e" + a.mark)}, proc.on}
	}
	return nil
}

// ptyRequest is as in RFC 4254, section 6.2.
type ptyRequest struct {
	Term                      string
	Cols, Rows, Width, Height uint32 // the last two in pixels: not known
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

// answerError returns the error that the script reports.
func (a *attempt) answerError(code string) error {
	dir := func(err error) error {
		return &fs.PathError{Op: "chdir", Path: a.program.Dir, Err: err}
	}
	program := func(err error) error {
		return &fs.PathError{Op: "exec", Path: a.program.Args[0], Err: err}
	}
	code, why, _ := strings.Cut(code, " ")
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
		return fmt.Errorf("start %q: the server gives no terminal (PermitTTY, or out of "+
			"pseudo-terminals?)", a.program.Args[0])
	case noFIFODirectory:
		return fmt.Errorf("start %q: no place for a FIFO: %s", a.program.Args[0], why)
	case noFIFO:
		return fmt.Errorf("start %q: no FIFO can be made there: neither mkfifo nor mknod does it",
			a.program.Args[0])
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

// silentError is the error for a channel that ended before the script answered, because the login
// shell does not execute commands.
func (a *attempt) silentError(proc *process, dropped []byte, err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	select {
	case <-proc.ended:
	case <-time.After(time.Second):
	}
	status, werr := proc.Wait()
	if werr != nil {
		return werr
	}
	said, _ := bounded.ReadAll(proc.Err, "its standard error", 4<<10)
	said = append(dropped, said...)
	return fmt.Errorf("the user's login shell ended with status %d and did not execute it; it "+
		"said %q (is the account allowed to log in?)",
		status.Code, strings.TrimSpace(string(said)))
}

// abort ends the attempt, whatever stage it has reached. A shell that answers later finds no
// reader, and ends.
func (a *attempt) abort() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.aborted = true
	for _, p := range []*process{a.proc, a.feeder} {
		if p != nil {
			p.Stream.Close()
		}
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
