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

// A ListenHost is a Host that listens on addresses. On any other Host, Box.Listen returns
// errors.ErrUnsupported.
type ListenHost interface {
	// Listen listens on an address as seen from the host. For "tcp", "tcp4" and "tcp6" the address
	// is an IP address, or "" for all, and a port, where 0 stands for a free one. For "unix" it is
	// a path that is absolute or begins with "~/", where ~ is the home directory of the host's
	// user; only that user may connect to the socket. Errors are *net.OpError, and wrap the
	// system's error (syscall.EADDRINUSE, EACCES, …) where it is known.
	//
	// The listener's Close returns when the address is free again and the socket is gone from its
	// path. When the host is lost, Accept and the accepted connections return the error of Lost.
	// When only a connection is lost, its error is sandbox.ErrCut. The Box closes the listener
	// before the host.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
}

// Listen implements sandbox.Sandbox. The host must be a [ListenHost]. The listener and its
// connections end with the box.
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
	if err := b.refuseUnix(network); err != nil {
		return fail(err)
	}
	host, ok := b.host.(ListenHost)
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

// listenAddress returns an address in the form that ListenHost has it.
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

// A boxAddr is an address in the words of a caller.
type boxAddr struct{ network, address string }

func (a boxAddr) Network() string { return a.network }
func (a boxAddr) String() string  { return shown(a.address) }

// A listener is closed with its box.
type listener struct {
	net.Listener
	box     *Box
	noticed bool
	closed  atomic.Bool
}

// Accept returns connections that are closed with the box.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		conn, err = l.box.track(conn, l.noticed)
	}
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(),
			Err: l.acceptError(err)}
	}
	if l.noticed {
		l.box.touch()
	}
	return conn, nil
}

// acceptError returns why Accept has failed.
func (l *listener) acceptError(err error) error {
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

// Close closes the listener. Accepted connections go on. Closing again does nothing.
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
