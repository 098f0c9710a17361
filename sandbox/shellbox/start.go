package shellbox

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
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// start starts a shell in dir and waits until it can take commands. status is the $? that it begins
// with. If somebody kills the shell before its first prompt, start starts it again. If that was the
// end of the host, the next shell cannot be started.
func (s *session) start(ctx context.Context, dir string, status int) error {
	args, hint := s.box.shellArgs(), ""
	if dialect.ReadsStartupFiles(args) {
		hint = " (does a startup file wait for something?)"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.box.opts.StartLimit,
		fmt.Errorf("%s was not at its prompt within %v%s: %w", strings.Join(args, " "),
			s.box.opts.StartLimit, hint, context.DeadlineExceeded))
	defer cancel()
	for try := 1; ; try++ {
		err := s.startOnce(ctx, dir, status)
		if killed := new(killedEarly); !errors.As(err, killed) || try == maxTries {
			return err
		}
	}
}

// earlyEndError says how a shell has ended before its first command.
func (s *session) earlyEndError(sh *shell) error {
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
func (s *session) startOnce(ctx context.Context, dir string, status int) error {
	s.mu.Lock()
	rows, cols := s.rows, s.cols
	s.mu.Unlock()
	p, env, err := s.launch(ctx, dir, rows, cols)
	if err != nil {
		return ctxerr.Explain(ctx, err)
	}
	sh := newShell(p, rand.Text())
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		p.Close()
		p.Wait()
		return s.err
	}
	s.sh, s.ready, s.status = sh, false, status
	resized := rows != s.rows || cols != s.cols
	rows, cols = s.rows, s.cols
	seq := s.nextSeqLocked()
	s.runLocked(sh)
	s.mu.Unlock()
	if resized {
		p.Resize(rows, cols)
	}
	s.note(sh)
	sh.commands.write(sh.dialect.Hello(seq, env))
	if err = s.awaitGreeting(ctx, sh, seq); err == nil {
		s.learn(sh)
		s.mu.Lock()
		s.status = status // not hello's
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
// has ended meanwhile.
func (s *session) adopt(sh *shell) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-sh.ended:
		return false
	default: // from now on shellEnded reports it
	}
	s.ready = true
	if s.lastEnd.IsZero() { // no command was before
		s.lastEnd = time.Now().Add(-time.Minute)
	}
	s.sendLocked()
	return true
}

// launch starts the shell's process. env is the value of ENV that the process has not been given,
// or nil.
func (s *session) launch(ctx context.Context, dir string, rows,
	cols int) (p Process, env *string, err error) {
	program := Program{
		Args:     s.box.shellArgs(),
		Dir:      dir,
		Env:      s.box.environment(s.id, s.opts.Env),
		User:     s.opts.User,
		Terminal: &Terminal{Rows: rows, Cols: cols, Commands: true},
		Spool:    s.maxLog(),
	}
	env = s.hideStartupEnv(ctx, &program)
	p, err = s.box.host.Start(ctx, program)
	if errors.Is(err, exec.ErrNotFound) && s.box.opts.Shell == nil &&
		s.box.noBash.CompareAndSwap(false, true) {
		program.Args = s.box.shellArgs()
		env = s.hideStartupEnv(ctx, &program)
		p, err = s.box.host.Start(ctx, program)
	}
	return p, env, err
}

// awaitAnswer waits until the shell has answered line seq.
func (s *session) awaitAnswer(ctx context.Context, sh *shell, seq int) error {
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

// learn finds out the terminal's name, and what the shell reads when it waits for a command. The
// shell begins that read a few microseconds after its answer, or later on a busy machine.
func (s *session) learn(sh *shell) {
	for pause, begin := 100*time.Microsecond, time.Now(); time.Since(
		begin) < 2*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		l, err := s.box.look(sh.proc)
		s.mu.Lock()
		sh.pipe, sh.image = l.Reads, l.Image
		// UNIX98_PTY_SLAVE_MAJOR and the seven behind it
		if major := l.TTY >> 8 & 0xfff; major >= 136 && major <= 143 {
			sh.dialect.TTY = "/dev/pts/" + strconv.Itoa(l.TTY&0xff|l.TTY>>12&0xfff00)
		}
		s.mu.Unlock()
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
