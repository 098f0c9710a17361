package session

import (
	"cmp"
	"context"
	"errors"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/shellstate"
)

// SharesHost reports whether the session is on the host of b.
func (s *Session) SharesHost(b *Box) bool {
	return cmp.Or(s.box.Owner, s.box) == cmp.Or(b.Owner, b)
}

// A Prompt is a session whose shell is at its prompt.
type Prompt struct {
	Shell      shellstate.Session
	Status     int // $?
	Rows, Cols int
}

// AtPrompt calls use while the session's shell is at its prompt. No other program gets the turn
// meanwhile, but calls of this one may begin commands. If a command is unfinished, the error is
// sandbox.ErrBusy.
func (s *Session) AtPrompt(ctx context.Context, use func(p Prompt) error) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	s.mu.Lock()
	p := Prompt{Status: s.status, Rows: s.rows, Cols: s.cols}
	if err = s.err; err == nil && s.cmd != nil {
		err = sandbox.ErrBusy
	}
	if err == nil {
		p.Shell = s.forStateLocked()
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return use(p)
}

// SetStatus sets $?.
func (s *Session) SetStatus(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// forStateLocked returns what package shellstate needs of a session.
func (s *Session) forStateLocked() shellstate.Session {
	sh := s.sh
	return shellstate.Session{
		ID: s.id, PID: sh.pid, Bash: sh.dialect.Bash, TTY: sh.dialect.TTY, Reads: sh.pipe,
		Own: sh.dialect.Own(), Execute: s.quietly,
		Run: func(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
			cmd.User = s.opts.User
			return s.box.Run(ctx, cmd)
		},
	}
}

// quietly executes commands of the engine, without a trace: what the session's users have not been
// told of the last command, and $?, stay.
func (s *Session) quietly(ctx context.Context, commands string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	o := sandbox.NewExecOptions(sandbox.AtQuestion(sandbox.Fail))
	c := newCommand("", false)
	c.text, c.quiet = commands, true
	s.mu.Lock()
	restarted, status := s.restarted, s.status
	if err = s.beginLocked(ctx, c, o); err != nil {
		s.mu.Unlock()
		return err
	}
	w := s.newCallLocked(c, o)
	s.mu.Unlock()
	r, err := w.waitAndDrain(ctx, onEndKill)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarted = s.restarted || restarted || r != nil && r.Restarted
	switch {
	case err != nil:
		return err
	case r.State != sandbox.Exited || r.Restarted && !restarted:
		return errors.New("the shell has ended")
	}
	s.status = status
	return nil
}
