package session

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
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

var errNoContext = errors.New("the context is nil")

// CheckContext returns why nothing may be begun with ctx.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ctxerr.Of(ctx)
}

// Execute implements sandbox.Session.
func (s *Session) Execute(ctx context.Context, command string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	r, err := s.execute(ctx, newCommand(command, false), sandbox.NewExecOptions(opts...))
	if err != nil {
		err = fmt.Errorf("execute %s in %s: %w", Abridged(command), s.id, err)
	}
	return r, err
}

func (s *Session) execute(ctx context.Context, c *command,
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
func (s *Session) begin(ctx context.Context, c *command, o sandbox.ExecOptions) (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.beginLocked(ctx, c, o); err != nil {
		return nil, err
	}
	return s.newCallLocked(c, o), nil
}

// beginLocked begins a command.
func (s *Session) beginLocked(ctx context.Context, c *command, o sandbox.ExecOptions) error {
	if strings.ContainsRune(c.text, 0) {
		return errNULByte
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
	s.cmd = c
	if !c.quiet {
		s.unreported = nil
	}
	c.follow(o.Follow)
	s.logBeginLocked(c, "command started")
	s.box.Touch()
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
func (s *Session) sendLocked() {
	c, sh := s.cmd, s.sh
	if c == nil || c.phase != phase.Queued || !sh.phase.TakesCommands() {
		return
	}
	s.advanceLocked(c, phase.LineSent)
	c.sh, c.seq, c.active = sh, s.nextSeqLocked(), time.Now()
	if c.startedAfter.IsZero() {
		c.startedAfter = s.lastEnd
	}
	c.tries++
	c.offset = sh.commands.Write(s.renewal + sh.dialect.Command(c.seq, s.status, c.text, c.isJob))
	c.sentAt = time.Now()
	s.tendSoonLocked(quietMin)
}

// maxTries is how often a shell is asked until it is replaced.
const maxTries = 3

// maxSends is how often a command's line is sent until the shell is replaced: as it is, without
// HighFD, after a Repair, and with /dev/tty for the terminal.
const maxSends = 4

// resendLocked sends a command again that the shell has not run. noTerminal says that the shell has
// printed the command's own End marker all the same: it could not open its terminal by name.
func (s *Session) resendLocked(c *command, noTerminal bool) {
	sh := s.sh
	s.box.Log.Info("the shell has not taken a command: sending it again", "session", s.id,
		"command", c.number)
	if c.tries >= maxSends {
		s.replaceShellLocked(sh)
		return
	}
	if noTerminal && sh.dialect.HighFD {
		// Most likely, ulimit -n allows no such descriptor. Repair would remove functions of the
		// user's.
		sh.dialect.HighFD = false
	} else {
		if noTerminal && c.repaired {
			sh.dialect.TTY = "/dev/tty"
		}
		c.repaired = true
		sh.commands.Write(dialect.Repair)
	}
	s.advanceLocked(c, phase.LineDropped)
	s.sendLocked()
}

// replaceShellLocked kills a shell that is of no use. Its end makes another one take its place.
func (s *Session) replaceShellLocked(sh *shell) {
	select {
	case <-sh.exited: // its id may be another process's
		return
	default:
	}
	s.box.Log.Warn("killing the shell: it takes no commands", "session", s.id)
	s.readers.Go(func() { s.box.Processes.Send([]int{sh.pid}, proc.SIGKILL) })
}

// askShellLocked asks the shell whether it is back, and returns the number of the question. Once
// the shell has ended, there is nobody to ask: ok is false.
func (s *Session) askShellLocked(sh *shell) (seq int, ok bool) {
	if s.sh != sh || sh.phase == phase.Gone {
		return 0, false
	}
	seq = s.nextSeqLocked()
	sh.commands.Write(sh.dialect.Ask(seq))
	return seq, true
}

// nextSeqLocked returns the number of the next line.
func (s *Session) nextSeqLocked() int {
	s.seq++
	return s.seq
}
