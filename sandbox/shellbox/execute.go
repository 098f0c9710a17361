package shellbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

var errNoContext = errors.New("the context is nil")

// checkContext returns why nothing may be begun with ctx.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ctxerr.Of(ctx)
}

// Execute implements sandbox.Session.
func (s *session) Execute(ctx context.Context, command string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	r, err := s.execute(ctx, newCommand(command, false), sandbox.NewExecOptions(opts...))
	if err != nil {
		err = fmt.Errorf("execute %s in %s: %w", abridged(command), s.id, err)
	}
	return r, err
}

func (s *session) execute(ctx context.Context, c *command,
	o sandbox.ExecOptions) (*sandbox.Result, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	w, err := s.begin(ctx, c, o)
	leave()
	if err != nil {
		return nil, err
	}
	return w.waitAndDrain(ctx, onEndKill.orLeave(o))
}

// begin begins a command and the call that waits for it.
func (s *session) begin(ctx context.Context, c *command, o sandbox.ExecOptions) (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.beginLocked(ctx, c, o); err != nil {
		return nil, err
	}
	return s.newCallLocked(c, o), nil
}

// beginLocked begins a command.
func (s *session) beginLocked(ctx context.Context, c *command, o sandbox.ExecOptions) error {
	if strings.ContainsRune(c.text, 0) {
		return errors.New("a command cannot hold a NUL byte: write it as \\0 for printf, or " +
			"copy a file in")
	}
	if ctx == nil {
		return errNoContext
	}
	if err := checkPolicy(o.Question); err != nil {
		return err
	}
	switch {
	case s.err != nil:
		return s.err
	case s.cmd != nil:
		return sandbox.ErrBusy
	case ctx.Err() != nil:
		return ctxerr.Of(ctx)
	}
	s.cmd, s.unreported = c, nil
	c.follow(o.Follow)
	s.logBeginLocked(c, "command started")
	s.box.touch()
	s.sendLocked()
	return nil
}

func checkPolicy(p sandbox.Policy) error {
	if p < sandbox.Return || p > sandbox.KeepWaiting {
		return fmt.Errorf("AtQuestion: there is no policy %d: give Return, EndInput, Fail or "+
			"KeepWaiting", p)
	}
	return nil
}

// sendLocked sends the queued command, if there is one, to the shell.
func (s *session) sendLocked() {
	c, sh := s.cmd, s.sh
	if c == nil || c.phase != queued || !sh.phase.takesCommands() {
		return
	}
	s.advanceLocked(c, lineSent)
	c.sh, c.seq, c.active = sh, s.nextSeqLocked(), time.Now()
	if c.startedAfter.IsZero() {
		c.startedAfter = s.lastEnd
	}
	c.tries++
	c.offset = sh.commands.Write(sh.dialect.Command(c.seq, s.status, c.text, c.isJob))
	w := &watch{s: s, c: c, sh: sh, tries: c.tries}
	time.AfterFunc(quietMin, func() { s.spawn(w.run) })
}

// maxTries is how often a command's line is sent, and how often a shell is asked, until the shell
// is replaced.
const maxTries = 3

// resendLocked sends a command again that the shell has not run. noTerminal says that the shell has
// printed the command's own End marker all the same: it could not open its terminal by name.
func (s *session) resendLocked(c *command, noTerminal bool) {
	sh := s.sh
	s.box.log.Info("the shell has not taken a command: sending it again", "session", s.id,
		"command", c.number)
	switch {
	case noTerminal && sh.dialect.HighFD: // ulimit -n allows no such descriptor
		sh.dialect.HighFD = false
	case noTerminal:
		sh.dialect.TTY = "/dev/tty"
	}
	if c.tries >= maxTries {
		s.replaceShellLocked(sh)
		return
	}
	s.advanceLocked(c, lineDropped)
	sh.commands.Write(dialect.Repair)
	s.sendLocked()
}

// replaceShellLocked kills a shell that is of no use. Its end makes another one take its place.
func (s *session) replaceShellLocked(sh *shell) {
	select {
	case <-sh.exited: // its id may be another process's
		return
	default:
	}
	s.box.log.Warn("killing the shell: it takes no commands", "session", s.id)
	s.readers.Go(func() { s.box.processes.Send([]int{sh.pid}, proc.SIGKILL) })
}

// askShellLocked asks the shell whether it is back, and returns the number of the question. Once
// the shell has ended, there is nobody to ask: ok is false.
func (s *session) askShellLocked(sh *shell) (seq int, ok bool) {
	if s.sh != sh || sh.phase == gone {
		return 0, false
	}
	seq = s.nextSeqLocked()
	sh.commands.Write(sh.dialect.Ask(seq))
	return seq, true
}

// nextSeqLocked returns the number of the next line.
func (s *session) nextSeqLocked() int {
	s.seq++
	return s.seq
}
