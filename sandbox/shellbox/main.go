package shellbox

import (
	"context"

	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// A Box is its main session, too. One that New has not made, as in a zero LocalBox, is a closed one.

var neverMade = &Box{
	closed: true, down: closedChannel(), host: nowhere{}, count: map[string]int{},
	session: &session{id: "main", err: sandbox.ErrClosed, screen: terminal.NewTail(0)},
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// nowhere is the Host of a Box that New has not made. It is asked for nothing but its name.
type nowhere struct{ Host }

func (nowhere) String() string { return "a box that was not made by New" }

// made returns the Box, or neverMade.
func (b *Box) made() *Box {
	if b == nil || b.host == nil {
		return neverMade
	}
	return b
}

// ID returns the main session's id, "main".
func (b *Box) ID() string { return b.made().session.ID() }

// Execute implements sandbox.Session.
func (b *Box) Execute(ctx context.Context, command string, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.made().session.Execute(ctx, command, opts...)
}

// Input implements sandbox.Session.
func (b *Box) Input(ctx context.Context, text string, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.made().session.Input(ctx, text, opts...)
}

// Type implements sandbox.Session.
func (b *Box) Type(ctx context.Context, text string) error { return b.made().session.Type(ctx, text) }

// Wait implements sandbox.Session.
func (b *Box) Wait(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.made().session.Wait(ctx, opts...)
}

// Interrupt implements sandbox.Session.
func (b *Box) Interrupt(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.made().session.Interrupt(ctx, opts...)
}

// Screen implements sandbox.Session.
func (b *Box) Screen(ctx context.Context) (*sandbox.Screen, error) {
	return b.made().session.Screen(ctx)
}

// Resize implements sandbox.Session.
func (b *Box) Resize(ctx context.Context, rows, cols int) error {
	return b.made().session.Resize(ctx, rows, cols)
}
