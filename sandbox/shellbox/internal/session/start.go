package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// Start starts the session's first shell in dir and waits until it can take commands. For a job on
// pipes it starts the command. If Start fails, the caller closes the session. The error wraps that
// of the Box's Start.
func (s *Session) Start(ctx context.Context, dir string) error {
	s.opts.Dir = dir
	if s.opts.Pipes {
		return s.startOnPipes(ctx, dir)
	}
	return s.start(ctx, dir, 0)
}

// start starts a shell in dir and waits until it can take commands. status is the $? that it begins
// with. If a signal kills the shell before its first prompt, start starts it again. (If the host
// has ended, the next shell cannot be started.)
func (s *Session) start(ctx context.Context, dir string, status int) error {
	args, hint := s.box.shellArgs(), ""
	if dialect.ReadsStartupFiles(args) {
		hint = " (does a startup file wait for something?)"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.box.StartLimit,
		fmt.Errorf("%s was not at its prompt within %v%s: %w", strings.Join(args, " "),
			s.box.StartLimit, hint, context.DeadlineExceeded))
	defer cancel()
	for try := 1; ; try++ {
		err := s.startOnce(ctx, dir, status)
		if killed := new(killedEarly); !errors.As(err, killed) || try == maxTries {
			return err
		}
	}
}

// earlyEndError says how a shell has ended before its first command.
func (s *Session) earlyEndError(sh *shell) error {
	switch {
	case sh.lost != nil:
		return s.box.lostShell(sh.lost)
	case sh.status.Signal != 0:
		return killedEarly{sh.status.Code}
	}
	return fmt.Errorf("it ended with status %d before its first prompt%s%s", sh.status.Code,
		s.earlyOutput(sh), s.shellsHint())
}

// killedEarly is the end of a shell by a signal, before its first prompt.
type killedEarly struct{ status int }

func (k killedEarly) Error() string {
	return fmt.Sprintf("it ended with status %d before its first prompt", k.status)
}

// startOnce starts a shell and waits until it can take commands.
func (s *Session) startOnce(ctx context.Context, dir string, status int) error {
	s.mu.Lock()
	rows, cols, seq := s.rows, s.cols, s.nextSeqLocked()
	s.mu.Unlock()
	d := dialect.New(rand.Text())
	launching := ctx
	if s.box.Keeps {
		if text, err := s.noteText(d.Secret, 0, nil); err == nil {
			launching = hostapi.WithNote(ctx, text)
		}
	}
	p, hello, err := s.launch(launching, dir, rows, cols, func(env *string) string {
		return d.Hello(seq, env)
	})
	if err != nil {
		return ctxerr.Explain(ctx, err)
	}
	sh := newShell(p, d)
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		p.Close()
		s.box.Wait(p)
		return s.err
	}
	// The last shell will not answer what it has been asked meanwhile.
	s.sh, s.status, s.seq = sh, status, seq
	resized := rows != s.rows || cols != s.cols
	rows, cols = s.rows, s.cols
	s.runLocked(sh)
	s.mu.Unlock()
	if resized {
		p.Resize(rows, cols)
	}
	s.storeNote(sh)
	if first, ok := p.(hostapi.FirstTaker); ok && first.TookFirst() {
		sh.commands.Skip(int64(len(hello)))
	} else {
		sh.commands.Write(hello)
	}
	if err = s.awaitGreeting(ctx, sh, seq); err == nil {
		s.learnShell(sh)
		s.mu.Lock()
		s.status = status // not that of the answer
		s.mu.Unlock()
		if s.adopt(sh) {
			return nil
		}
		err = s.earlyEndError(sh)
	}
	p.Close()
	return fmt.Errorf("start %s: %w", strings.Join(s.box.shellArgs(), " "), err)
}

// adopt makes a shell the session's, and sends it the queued command. It reports false if the shell
// has ended already.
func (s *Session) adopt(sh *shell) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-sh.ended:
		return false
	default: // from now on handleShellEnd reports it
	}
	s.advanceShellLocked(sh, phase.Greeted)
	if s.lastEnd.IsZero() { // there was no command yet
		s.lastEnd = time.Now().Add(-time.Minute)
	}
	s.sendLocked()
	return true
}

// launch starts the shell's process. It returns the shell's first lines too, which makeHello makes
// for the value of ENV that the process has not been given, or nil.
func (s *Session) launch(ctx context.Context, dir string, rows, cols int,
	makeHello func(env *string) string) (p Process, hello string, err error) {
	program := Program{
		Args:  s.box.shellArgs(),
		Dir:   dir,
		Env:   s.box.Env.Of(s.id, s.opts.Env),
		User:  s.opts.User,
		Rows:  rows,
		Cols:  cols,
		Spool: s.maxLog(),
	}
	ctx = s.named(ctx)
	start := func() {
		hello = makeHello(s.hideStartupEnv(ctx, &program))
		p, err = s.box.Start(hostapi.WithFirst(ctx, hello), program)
	}
	start()
	if errors.Is(err, exec.ErrNotFound) && s.box.Shell == nil &&
		s.box.noBash.CompareAndSwap(false, true) {
		program.Args = s.box.shellArgs()
		start()
	}
	if err == nil {
		s.mu.Lock()
		s.isNew = false
		s.mu.Unlock()
	}
	return p, hello, err
}

// awaitAnswer waits until the shell has answered line seq.
func (s *Session) awaitAnswer(ctx context.Context, sh *shell, seq int) error {
	for {
		s.mu.Lock()
		answered, answer := s.lastAnswer, sh.answered.Wait()
		s.mu.Unlock()
		if answered >= seq {
			return nil
		}
		select {
		case <-answer:
		case <-sh.ended:
			return s.earlyEndError(sh)
		case <-s.ended:
			return s.endErr()
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
}

// learnShell finds out the terminal's name, the shell's program, and what the shell reads when it
// waits for a command. If the host does not say that, looks do. The shell begins that read a few
// microseconds after its answer, or later on a busy machine.
func (s *Session) learnShell(sh *shell) {
	if known := s.box.Processes.Shell(sh.proc); known.Reads != "" {
		s.setShell(sh, known)
		return
	}
	for pause, begin := 100*time.Microsecond, time.Now(); time.Since(
		begin) < 2*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		l, err := s.box.Processes.Look(sh.proc)
		s.setShell(sh, proc.Shell{TTY: l.TTY, Reads: l.Reads, Image: l.Image})
		if err != nil || l.Gone || l.Reads != "" || l.Hidden || l.TTY == 0 {
			return
		}
		select {
		case <-s.ended:
			return
		case <-time.After(pause):
		}
	}
}

// setShell sets what is known of a shell.
func (s *Session) setShell(sh *shell, known proc.Shell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh.pipe, sh.image = known.Reads, known.Image
	// UNIX98_PTY_SLAVE_MAJOR and the seven behind it
	if major := known.TTY >> 8 & 0xfff; major >= 136 && major <= 143 {
		sh.dialect.TTY = "/dev/pts/" + strconv.Itoa(known.TTY&0xff|known.TTY>>12&0xfff00)
	}
}
