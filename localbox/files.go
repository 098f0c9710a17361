package localbox

import (
	"context"
	"errors"

	"github.com/sandshell/sandshell/internal/fswatch"
	"github.com/sandshell/sandshell/internal/osfiles"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var (
	_ shellbox.FileHost    = (*host)(nil)
	_ shellbox.FileChanger = files{}
	_ shellbox.TreeWatcher = files{}
)

// OpenFiles implements shellbox.FileHost. The files are reached by this program's system calls, so
// there is no other user.
func (h *host) OpenFiles(_ context.Context, user string) (shellbox.FileClient, error) {
	if user != "" {
		return nil, errors.ErrUnsupported
	}
	return files{}, nil
}

// files implements shellbox.FileClient for this machine.
type files struct{ osfiles.Client }

// Watch implements shellbox.FileWatcher.
func (files) Watch(_ context.Context, name string) (shellbox.FileWatch, error) {
	w, err := fswatch.New(name)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// WatchTree implements shellbox.TreeWatcher.
func (files) WatchTree(_ context.Context, name string) (shellbox.FileWatch, error) {
	w, err := fswatch.NewTree(name)
	if err != nil {
		return nil, err
	}
	return w, nil
}
