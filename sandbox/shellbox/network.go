package shellbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

func checkNetwork(network string) error {
	switch network {
	case "tcp", "tcp4", "tcp6", "unix":
		return nil
	}
	return fmt.Errorf("%w: the networks are tcp, tcp4, tcp6 and unix", errors.ErrUnsupported)
}

// shown returns a text of a caller in the form that errors show: an empty one in quotes.
func shown(text string) string {
	if text == "" {
		return `""`
	}
	return text
}

// Dial implements sandbox.Sandbox. The connection ends with the box.
func (b *Box) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := checkNetwork(network); err != nil {
		return nil, fmt.Errorf("dial %s %s: %w", shown(network), shown(address), err)
	}
	if err := b.refuseUnix(network); err != nil {
		return nil, fmt.Errorf("dial %s %s: %w", shown(network), shown(address), err)
	}
	ctx, done, err := b.call(ctx)
	if err != nil {
		return nil, fmt.Errorf("dial %s %s: %w", shown(network), shown(address), err)
	}
	defer done()
	at := address
	if network == "unix" {
		if at, err = b.socketPath(ctx, address); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Addr: boxAddr{network, address},
				Err: err}
		}
	}
	conn, err := b.host.Dial(ctx, network, at)
	if err != nil {
		return nil, ctxerr.Explain(ctx, err)
	}
	t, err := b.track(conn, noticed(ctx))
	if err != nil {
		return nil, fmt.Errorf("dial %s %s: %w", shown(network), shown(address), err)
	}
	return t, nil
}

// socketPath returns the absolute path of a socket.
func (b *Box) socketPath(ctx context.Context, name string) (string, error) {
	at, err := b.filePath(name)
	if err != nil || at[0] != '~' {
		return at, err
	}
	return b.files.Expand(ctx, "dial", name)
}

// track returns a connection that is closed with the box.
func (b *Box) track(conn net.Conn, noticed bool) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		conn.Close()
		return nil, sandbox.ErrClosed
	}
	t := &tracked{conn, b, noticed}
	b.conns[t] = struct{}{}
	return t, nil
}

// A tracked connection is closed with its box.
type tracked struct {
	net.Conn
	box     *Box
	noticed bool
}

func (t *tracked) Close() error {
	t.box.mu.Lock()
	delete(t.box.conns, t)
	t.box.mu.Unlock()
	if t.noticed {
		t.box.touch()
	}
	return t.Conn.Close()
}

// CloseWrite closes the writing half of a connection that has one. For others the error is
// errors.ErrUnsupported.
func (t *tracked) CloseWrite() error {
	if c, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// closeConnections closes all listeners and connections.
func (b *Box) closeConnections() {
	b.mu.Lock()
	listeners, conns := b.listeners, b.conns
	b.listeners, b.conns = nil, nil
	b.mu.Unlock()
	var closing sync.WaitGroup
	for l := range listeners { // all at once: each may have to wait for the host
		closing.Go(func() { l.Listener.Close() })
	}
	closing.Wait()
	for conn := range conns {
		conn.Conn.Close()
	}
}
