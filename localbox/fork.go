package localbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/sandbox"
)

// Snapshot returns errors.ErrUnsupported: see Fork.
func (b *LocalBox) Snapshot(context.Context, ...sandbox.SessionOption) error {
	return fmt.Errorf("localbox: snapshot: %w", errNotItsOwn)
}

// Fork returns errors.ErrUnsupported: the files and programs of this machine are not the box's
// alone. [sandbox.Like] makes a session like another one, and History brings a directory back.
func (b *LocalBox) Fork(context.Context, int, ...sandbox.SessionOption) ([]*LocalBox, error) {
	return nil, fmt.Errorf("localbox: fork: %w", errNotItsOwn)
}

var errNotItsOwn = fmt.Errorf("%w: the machine is not the box's own, so it cannot be copied: "+
	"sandbox.Like makes a session like another one, and History brings a directory back",
	errors.ErrUnsupported)
