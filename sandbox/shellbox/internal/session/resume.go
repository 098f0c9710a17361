package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// Input implements sandbox.Session.
func (s *Session) Input(ctx context.Context, text string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return s.resume(ctx, "input to", opts, onEndKill, func() { s.typeLocked(text) })
}

// Type implements sandbox.Session.
func (s *Session) Type(ctx context.Context, text string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return fmt.Errorf("type to %s: %w", s.id, err)
	}
	defer leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.unfinishedLocked(ctx, false); err != nil {
		return fmt.Errorf("type to %s: %w", s.id, err)
	}
	s.typeLocked(text)
	return nil
}

// Wait implements sandbox.Session.
func (s *Session) Wait(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return s.resume(ctx, "wait for", opts, onEndLeave, func() {})
}

// Interrupt implements sandbox.Session.
func (s *Session) Interrupt(ctx context.Context,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	r, err := s.resume(ctx, "interrupt", opts, killNow, s.killLocked)
	if !errors.Is(err, hostapi.ErrTurn) {
		return r, err
	}
	if err := s.interruptOther(ctx); err != nil {
		return nil, fmt.Errorf("interrupt %s: %w", s.id, err)
	}
	r, err = s.resume(ctx, "interrupt", opts, killNow, s.killLocked)
	if errors.Is(err, sandbox.ErrIdle) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return &sandbox.Result{State: sandbox.Exited, ExitCode: s.status, Cwd: s.cwd}, nil
	}
	return r, err
}

// A mode says whether a call kills the command.
type mode int

const (
	onEndKill  mode = iota // when ctx ends
	onEndLeave             // when ctx ends, the command goes on
	killNow
)

// orLeave returns the mode of a call with these options.
func (m mode) orLeave(o sandbox.ExecOptions) mode {
	if m == onEndKill && o.Leave {
		return onEndLeave
	}
	return m
}

// unfinishedLocked returns the command that calls are about. If unreported is set, that may be a
// command that has ended while no call waited for it.
func (s *Session) unfinishedLocked(ctx context.Context, unseen bool) (*command, error) {
	c := s.cmd
	if c == nil && unseen {
		c = s.unreported
	}
	switch {
	case ctx == nil:
		return nil, errNoContext
	case s.err != nil:
		return nil, s.err
	case c == nil:
		return nil, sandbox.ErrIdle
	}
	return c, ctxerr.Of(ctx)
}

// resume waits for the unfinished command. If the command has not ended, it first calls act with
// s.mu locked.
func (s *Session) resume(ctx context.Context, verb string, opts []sandbox.ExecOption, m mode,
	act func()) (*sandbox.Result, error) {
	o := sandbox.NewExecOptions(opts...)
	if err := checkPolicy(o.Question); err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, s.id, err)
	}
	leave, err := s.enterToResume(ctx, m != onEndKill)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, s.id, err)
	}
	s.mu.Lock()
	c, err := s.unfinishedLocked(ctx, m != onEndKill)
	if err != nil {
		s.mu.Unlock()
		leave()
		return nil, fmt.Errorf("%s %s: %w", verb, s.id, err)
	}
	w := s.newCallLocked(c, o)
	if s.cmd == c {
		act()
	}
	s.mu.Unlock()
	leave()
	r, err := w.waitAndDrain(ctx, m.orLeave(o))
	if err != nil {
		err = fmt.Errorf("%s %s in %s: %w", verb, Abridged(c.text), s.id, err)
	}
	return r, err
}
