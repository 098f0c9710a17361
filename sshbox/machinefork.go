package sshbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/sandbox"
)

// Snapshot returns errors.ErrUnsupported: see Fork.
func (b *SSHBox) Snapshot(context.Context, ...sandbox.SessionOption) error {
	return fmt.Errorf("sshbox: snapshot: %w", errNotItsOwn)
}

// Fork returns errors.ErrUnsupported: the files and programs of the machine are not the box's
// alone. [sandbox.Like] makes a session like another one, and History brings a directory back.
func (b *SSHBox) Fork(context.Context, int, ...sandbox.SessionOption) ([]*SSHBox, error) {
	return nil, fmt.Errorf("sshbox: fork: %w", errNotItsOwn)
}

var errNotItsOwn = fmt.Errorf("%w: the machine is not the box's own, so it cannot be copied: "+
	"sandbox.Like makes a session like another one, and History brings a directory back",
	errors.ErrUnsupported)
