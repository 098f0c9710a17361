package shellbox

import (
	"context"

	"github.com/sandshell/sandshell/sandbox"
)

// A Box is its main session, too.

// ID returns the main session's id, "main".
func (b *Box) ID() string { return b.session.ID() }

// Execute implements sandbox.Session.
func (b *Box) Execute(ctx context.Context, command string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.session.Execute(ctx, command, opts...)
}

// Input implements sandbox.Session.
func (b *Box) Input(ctx context.Context, text string,
	opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.session.Input(ctx, text, opts...)
}

// Type implements sandbox.Session.
func (b *Box) Type(ctx context.Context, text string) error { return b.session.Type(ctx, text) }

// Wait implements sandbox.Session.
func (b *Box) Wait(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.session.Wait(ctx, opts...)
}

// Interrupt implements sandbox.Session.
func (b *Box) Interrupt(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return b.session.Interrupt(ctx, opts...)
}

// Screen implements sandbox.Session.
func (b *Box) Screen(ctx context.Context) (*sandbox.Screen, error) {
	return b.session.Screen(ctx)
}

// Resize implements sandbox.Session.
func (b *Box) Resize(ctx context.Context, rows, cols int) error {
	return b.session.Resize(ctx, rows, cols)
}
