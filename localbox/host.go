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
	state *tempdir.Dir // see Reap
	once  sync.Once
	err   error

	mu      sync.Mutex
	plugins string // their directory; empty: none yet
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

// pluginDir returns the directory for plugins.
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
