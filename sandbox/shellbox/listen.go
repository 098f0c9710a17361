package shellbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A Listener is a Host that listens on addresses. On any other Host, Box.Listen returns
// errors.ErrUnsupported.
type Listener interface {
	// Listen listens on an address as seen from the host: with "tcp", "tcp4" and "tcp6" an IP
	// address, or "" for all, and a port, where 0 stands for one that is free; with "unix" a path
	// that is absolute or begins with "~/", ~ being the home directory of the host's user, of a
	// socket to which only that user may connect. Errors are *net.OpError, and wrap the system's
	// (syscall.EADDRINUSE, EACCES, …) where it is known.
	//
	// The listener's Close returns when the address is free again and the socket is gone from its
	// path. Accept returns the error of Lost once the host is lost; then what was accepted fails
	// with it, or with sandbox.ErrCut when its connection alone is lost. The Box closes the
	// listener before the host.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// Listen implements sandbox.Sandbox. The host has to be a [Listener].
func (b *Box) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	l, err := b.listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", b, err)
	}
	return l, nil
}

func (b *Box) listen(ctx context.Context, network, address string) (net.Listener, error) {
	fail := func(err error) (net.Listener, error) {
		var op *net.OpError
		if !errors.As(err, &op) {
			err = &net.OpError{Op: "listen", Net: network, Addr: boxAddr{network, address},
				Err: err}
		}
		return nil, err
	}
	if err := checkNetwork(network); err != nil {
		return fail(err)
	}
	if err := b.refusesUnix(network); err != nil {
		return fail(err)
	}
	host, ok := b.host.(Listener)
	if !ok {
		return fail(fmt.Errorf("%w by this host", errors.ErrUnsupported))
	}
	at, err := b.listenAddress(network, address)
	if err != nil {
		return fail(err)
	}
	ctx, done, err := b.call(ctx)
	if err != nil {
		return fail(err)
	}
	defer done()
	on, err := host.Listen(ctx, network, at)
	if err != nil {
		return fail(ctxerr.Explain(ctx, err))
	}
	l := &listener{Listener: on, box: b, noticed: noticed(ctx)}
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.listeners[l] = struct{}{}
	}
	b.mu.Unlock()
	if closed {
		on.Close()
		return fail(sandbox.ErrClosed)
	}
	return l, nil
}

// listenAddress makes an address one that is the same on every host.
func (b *Box) listenAddress(network, address string) (string, error) {
	if network == "unix" {
		return b.filePath(address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", &net.AddrError{Err: "the port is not a number from 0 to 65535", Addr: address}
	}
	if host == "localhost" {
		host = "127.0.0.1"
		if network == "tcp6" {
			host = "::1"
		}
	}
	ip := net.ParseIP(host)
	if host != "" && (ip == nil || network == "tcp4" && ip.To4() == nil || network == "tcp6" &&
		ip.To4() != nil) {
		return "", &net.AddrError{Err: "not an IP address of " + network + ", nor localhost",
			Addr: address}
	}
	return net.JoinHostPort(host, port), nil
}

// boxAddr is an address as a caller has written it.
type boxAddr struct{ network, address string }

func (a boxAddr) Network() string { return a.network }
func (a boxAddr) String() string  { return shown(a.address) }

// A listener ends with its box.
type listener struct {
	net.Listener
	box     *Box
	noticed bool
	closed  atomic.Bool
}

// Accept returns connections that end with the box.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		conn, err = l.box.track(conn, l.noticed)
	}
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(),
			Err: l.why(err)}
	}
	if l.noticed {
		l.box.touch()
	}
	return conn, nil
}

// why returns why Accept has failed.
func (l *listener) why(err error) error {
	if l.closed.Load() {
		return net.ErrClosed
	}
	select {
	case <-l.box.closing:
		return sandbox.ErrClosed
	default:
		return err
	}
}

// Close closes the listener. Connections that were accepted go on. Closing again does nothing.
func (l *listener) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.box.mu.Lock()
	_, open := l.box.listeners[l]
	delete(l.box.listeners, l)
	l.box.mu.Unlock()
	if !open { // the box's Close closes it
		return nil
	}
	return l.Listener.Close()
}
