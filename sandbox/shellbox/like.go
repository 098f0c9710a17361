package shellbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/shellstate"
)

// A likeness is what a session that is like another one gets of it.
type likeness struct {
	shell  shellstate.Session // the other one
	user   string             // whose it is
	state  *shellstate.State
	status int // $?
	lost   []sandbox.Loss
}

// shellSession returns the main session, for a Like.
func (b *Box) shellSession() *session.Session { return b.session }

// sessionOf returns the session of a Box that s is or wraps, or nil.
func sessionOf(s sandbox.Session) *session.Session {
	for s != nil {
		switch t := s.(type) {
		case *session.Session:
			return t
		case interface{ shellSession() *session.Session }: // a Box, or what embeds one
			return t.shellSession()
		case interface{ Unwrap() sandbox.Session }:
			s = t.Unwrap()
		case interface{ Unwrap() sandbox.Sandbox }:
			s = t.Unwrap()
		default:
			return nil
		}
	}
	return nil
}

// like reads the state of the session that opts name, and sets the options that come from it. It
// returns nil if they name none.
func (b *Box) like(ctx context.Context, opts *sandbox.SessionOptions) (*likeness, error) {
	if opts.Like == nil {
		return nil, nil
	}
	source := sessionOf(opts.Like)
	switch {
	case source == nil:
		return nil, fmt.Errorf("like %s: %w: it is no session of this module, nor does it unwrap "+
			"to one", opts.Like.ID(), errors.ErrUnsupported)
	case !source.SharesHost(b.shared):
		return nil, fmt.Errorf("like %s: %w: it is a session of another sandbox: Snapshot and "+
			"Fork, of boxes that have them, copy a whole sandbox with its sessions",
			opts.Like.ID(), errors.ErrUnsupported)
	}
	l := &likeness{user: source.Options().User}
	opts.User = cmp.Or(opts.User, l.user)
	err := source.AtPrompt(ctx, func(p session.Prompt) error {
		opts.Rows, opts.Cols = cmp.Or(opts.Rows, p.Rows), cmp.Or(opts.Cols, p.Cols)
		l.shell, l.status = p.Shell, p.Status
		return b.readState(ctx, l)
	})
	if err != nil {
		return nil, fmt.Errorf("like %s: %w", source.ID(), err)
	}
	return l, nil
}

func (b *Box) readState(ctx context.Context, l *likeness) (err error) {
	pid := l.shell.PID
	before := processes.Without(b.processes.Tree(pid), pid)
	if l.state, err = shellstate.Capture(ctx, l.shell); err != nil || len(before) == 0 {
		return err
	}
	// The shell may have run some for its prompt, or for PS4.
	for _, p := range proc.Left(before, b.processes.Tree(pid)) {
		l.lost = append(l.lost, sandbox.Loss{Kind: sandbox.Programs, Session: l.shell.ID,
			PID: p.PID, What: processes.Name(p)})
	}
	return nil
}

// startLike starts the session's shell and gives it a state.
func (b *Box) startLike(ctx context.Context, s *session.Session, l *likeness,
	named sandbox.SessionOptions) error {
	err := b.start(ctx, s)
	if err == nil {
		err = l.apply(ctx, s, named)
	}
	return err
}

// apply gives a session that has just been started the state of the other. An error is an
// *sandbox.IncompleteError if something is lost that opts do not accept.
func (l *likeness) apply(ctx context.Context, s *session.Session,
	named sandbox.SessionOptions) error {
	keep := shellstate.Keep{Dir: named.Dir != ""}
	for _, kv := range named.Env {
		name, _, _ := strings.Cut(kv, "=")
		keep.Variables = append(keep.Variables, name)
	}
	if s.Options().User != l.user {
		keep.Variables = append(keep.Variables, "HOME", "USER", "LOGNAME", "SHELL")
	}
	err := s.AtPrompt(ctx, func(p session.Prompt) error {
		lost, err := shellstate.Restore(ctx, l.shell, l.state, p.Shell, keep)
		l.lost = append(l.lost, lost...)
		return err
	})
	if err != nil {
		return err
	}
	s.SetStatus(l.status)
	refused := &sandbox.IncompleteError{}
	for _, loss := range l.lost {
		if loss.Kind&named.Accept == 0 {
			refused.Lost = append(refused.Lost, loss)
		}
	}
	if len(refused.Lost) > 0 {
		return fmt.Errorf("like %s: %w", l.shell.ID, refused)
	}
	return nil
}
