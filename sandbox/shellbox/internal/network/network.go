// Package network is Dial and Listen of a Box, and the connections and listeners that end with it.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// A Box is what this package needs of the sandbox whose network it reaches.
type Box struct {
	Name string // what errors call it

	// Unix reports whether addresses of "unix" may be reached: the host reaches the sockets with
	// the rights of its own user.
	Unix bool

	// Call begins a call, which the box's Close waits for. The context ends with ctx, and with the
	// box. done ends the call.
	Call func(ctx context.Context) (_ context.Context, done func(), err error)

	// Path returns a caller's name of a socket as an absolute path, or as one that begins with "~".
	Path func(name string) (string, error)

	// Expand returns the absolute path that such a name stands for.
	Expand func(ctx context.Context, op, name string) (string, error)

	// Closed reports whether the box's Close has begun.
	Closed func() bool

	// Touch records that a connection begins or ends.
	Touch func()

	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Listen is nil if the host cannot listen.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)

	// ListenOutward is for hostapi.OutwardNetwork. It is nil if there is none.
	ListenOutward func(ctx context.Context) (net.Listener, error)
}

// A Network is the network of a Box. Its methods may be called concurrently.
type Network struct {
	box Box

	mu        sync.Mutex
	conns     map[*conn]struct{}
	listeners map[*listener]struct{}
}

// New returns the network of a box. It does no I/O.
func New(box Box) *Network {
	return &Network{box: box, conns: map[*conn]struct{}{}, listeners: map[*listener]struct{}{}}
}

// Busy reports whether there is an open connection that is an activity of the box.
func (n *Network) Busy() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		if c.noticed {
			return true
		}
	}
	return false
}

// Close closes all listeners and connections.
func (n *Network) Close() {
	n.mu.Lock()
	listeners, conns := n.listeners, n.conns
	n.listeners, n.conns = nil, nil
	n.mu.Unlock()
	var closing sync.WaitGroup
	for l := range listeners { // all at once: each may have to wait for the host
		closing.Go(func() { l.Listener.Close() })
	}
	closing.Wait()
	for c := range conns {
		c.Conn.Close()
	}
}

// check refuses networks that the box does not have.
func (n *Network) check(network string) error {
	switch network {
	case "tcp", "tcp4", "tcp6":
		return nil
	case "unix":
		if n.box.Unix {
			return nil
		}
		return fmt.Errorf("%w for another user than the sandbox's", errors.ErrUnsupported)
	}
	return fmt.Errorf("%w: the networks are tcp, tcp4, tcp6 and unix", errors.ErrUnsupported)
}

// Dial is Dial of the box.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	failed := func(err error) error {
		return fmt.Errorf("dial %s %s: %w", shown(network), shown(address), err)
	}
	if err := n.check(network); err != nil {
		return nil, failed(err)
	}
	ctx, done, err := n.box.Call(ctx)
	if err != nil {
		return nil, failed(err)
	}
	defer done()
	at := address
	if network == "unix" {
		if at, err = n.socketPath(ctx, address); err != nil {
			return nil, opError("dial", network, address, err)
		}
	}
	c, err := n.box.Dial(ctx, network, at)
	if err != nil {
		return nil, ctxerr.Explain(ctx, err)
	}
	tracked, err := n.track(c, hostapi.IsNoticed(ctx))
	if err != nil {
		return nil, failed(err)
	}
	return tracked, nil
}

// socketPath returns the absolute path of a socket.
func (n *Network) socketPath(ctx context.Context, name string) (string, error) {
	at, err := n.box.Path(name)
	if err != nil || at[0] != '~' {
		return at, err
	}
	return n.box.Expand(ctx, "dial", name)
}

// track returns a connection that is closed with the box.
func (n *Network) track(c net.Conn, noticed bool) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.box.Closed() {
		c.Close()
		return nil, sandbox.ErrClosed
	}
	t := &conn{c, n, noticed}
	n.conns[t] = struct{}{}
	return t, nil
}

// A conn is a connection that is closed with its box.
type conn struct {
	net.Conn
	network *Network
	noticed bool
}

func (c *conn) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	if c.noticed {
		c.network.box.Touch()
	}
	return c.Conn.Close()
}

// CloseWrite closes the writing half of a connection that has one. For others the error is
// errors.ErrUnsupported.
func (c *conn) CloseWrite() error {
	if c, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Reset closes the connection as hostapi.Resetter says.
func (c *conn) Reset() {
	if r, ok := c.Conn.(hostapi.Resetter); ok {
		r.Reset()
	}
	_ = c.Close()
}

// opError returns err as a *net.OpError about the address as the caller has given it.
func opError(op, network, address string, err error) error {
	return &net.OpError{Op: op, Net: network, Addr: boxAddr{network, address}, Err: err}
}

// A boxAddr is an address in the words of a caller.
type boxAddr struct{ network, address string }

func (a boxAddr) Network() string { return a.network }
func (a boxAddr) String() string  { return shown(a.address) }

// shown returns a text of a caller in the form that errors show: an empty one in quotes.
func shown(text string) string {
	if text == "" {
		return `""`
	}
	return text
}
