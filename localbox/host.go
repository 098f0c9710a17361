package localbox

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/tempdir"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A host starts processes of this machine.
type host struct {
	state *tempdir.Dir // the box's directory, which Reap looks for
	once  sync.Once
	err   error // what Close returns

	mu      sync.Mutex
	plugins string // the directory for plugins; "" if it has not been made
	closed  bool
}

func (h *host) String() string { return "LocalBox" }

// Lost implements shellbox.Host. This machine is never lost.
func (h *host) Lost(context.Context) error { return nil }

// Dial implements shellbox.Host.
func (h *host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Start implements shellbox.Host.
func (h *host) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if err := ctxerr.Of(ctx); err != nil {
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
		if h.state != nil {
			h.err = h.state.Remove()
		}
	})
	return h.err
}

// pluginDir returns the directory for plugins, and makes it if need be.
func (h *host) pluginDir() (dir string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", os.ErrClosed
	}
	if h.plugins == "" {
		dir := filepath.Join(h.state.Path, "plugins")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", err
		}
		h.plugins = dir
	}
	return h.plugins, nil
}
