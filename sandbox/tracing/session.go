package tracing

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/sandshell/sandshell/sandbox"
)

// A session is traced. It knows which command its calls are about.
type session struct {
	sandbox.Session
	box *Box

	mu      sync.Mutex
	current *command // the last one that was begun
}

// Execute implements sandbox.Session.
func (s *session) Execute(ctx context.Context, text string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	if ctx == nil {
		return s.Session.Execute(ctx, text, opts...) // which says so
	}
	ctx, c := s.box.begin(ctx, "execute")
	c.span.SetAttributes(attribute.String("sandshell.session", s.ID()))
	s.mu.Lock()
	before := s.current
	s.current = c
	s.mu.Unlock()
	res, err := s.Session.Execute(ctx, text, append(opts[:len(opts):len(opts)],
		sandbox.Follow(c))...)
	if res != nil {
		if before != nil {
			before.end(nil, nil) // nobody has asked for its end
		}
		c.saw(res, err)
		return res, err
	}
	c.end(nil, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == c { // an earlier command may still be there
		s.current = before
	}
	return res, err
}

// saw takes what a call about the command has returned.
func (c *command) saw(res *sandbox.Result, err error) {
	switch {
	case c == nil:
	case res != nil && res.State == sandbox.Exited, errors.Is(err, sandbox.ErrClosed),
		errors.Is(err, sandbox.ErrLost):
		c.end(res, err)
	case res != nil && res.State == sandbox.Waiting:
		c.span.AddEvent("waiting", trace.WithAttributes(
			attribute.String("sandshell.awaits", res.Awaits.String())))
	}
}

// about returns the command that a call is about; nil if there has been none.
func (s *session) about() *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Input implements sandbox.Session.
func (s *session) Input(ctx context.Context, text string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	c := s.about()
	res, err := s.Session.Input(ctx, text, opts...)
	c.saw(res, err)
	return res, err
}

// Wait implements sandbox.Session.
func (s *session) Wait(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	c := s.about()
	res, err := s.Session.Wait(ctx, opts...)
	c.saw(res, err)
	return res, err
}

// Interrupt implements sandbox.Session.
func (s *session) Interrupt(ctx context.Context,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	c := s.about()
	res, err := s.Session.Interrupt(ctx, opts...)
	c.saw(res, err)
	return res, err
}

// Close implements sandbox.Session.
func (s *session) Close() error {
	err := s.Session.Close()
	if c := s.about(); c != nil {
		c.end(nil, sandbox.ErrClosed)
	}
	return err
}

// Execute implements sandbox.Session.
func (b *Box) Execute(ctx context.Context, command string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.main.Execute(ctx, command, opts...)
}

// Input implements sandbox.Session.
func (b *Box) Input(ctx context.Context, text string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.main.Input(ctx, text, opts...)
}

// Wait implements sandbox.Session.
func (b *Box) Wait(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.main.Wait(ctx, opts...)
}

// Interrupt implements sandbox.Session.
func (b *Box) Interrupt(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.main.Interrupt(ctx, opts...)
}
