package localbox

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A host starts processes of this machine.
type host struct {
	temp string // to be removed
	once sync.Once
	err  error

	mu      sync.Mutex
	plugins string // their directory, to be removed; empty: none yet
	closed  bool
}

func (h *host) String() string { return "LocalBox" }

// Lost implements shellbox.Host: this machine is always there.
func (h *host) Lost(context.Context) error { return nil }

// Dial implements shellbox.Host.
func (h *host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Start implements shellbox.Host.
func (h *host) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	proc, err := start(p)
	if err != nil {
		return nil, err
	}
	return proc, nil
}

// Close implements shellbox.Host.
func (h *host) Close() error {
	h.once.Do(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.closed = true
		for _, dir := range []string{h.temp, h.plugins} {
			if dir != "" {
				h.err = errors.Join(h.err, removeAll(dir))
			}
		}
	})
	return h.err
}

// pluginDir returns the directory for plugins.
func (h *host) pluginDir() (dir string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", os.ErrClosed
	}
	if h.plugins == "" {
		h.plugins, err = os.MkdirTemp("", "sandshell-plugins-")
	}
	return h.plugins, err
}

// removeAll removes dir although there may be read-only directories in it, as Go's module cache has them.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				os.Chmod(p, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	return err
}
