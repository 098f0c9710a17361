package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// Listen is Listen of the box.
func (n *Network) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	l, err := n.listen(ctx, network, address)
	if err == nil {
		return l, nil
	}
	var op *net.OpError
	if !errors.As(err, &op) {
		err = opError("listen", network, address, err)
	}
	return nil, fmt.Errorf("listen in %s: %w", n.box.Name, err)
}

func (n *Network) listen(ctx context.Context, network, address string) (net.Listener, error) {
	listenOn := n.box.ListenOutward
	if network != hostapi.OutwardNetwork || listenOn == nil {
		if err := n.check(network); err != nil {
			return nil, err
		}
		if n.box.Listen == nil {
			return nil, fmt.Errorf("%w by this host", errors.ErrUnsupported)
		}
		at, err := n.listenAddress(network, address)
		if err != nil {
			return nil, err
		}
		listenOn = func(ctx context.Context) (net.Listener, error) {
			return n.box.Listen(ctx, network, at)
		}
	}
	ctx, done, err := n.box.Call(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	on, err := listenOn(ctx)
	if err != nil {
		return nil, ctxerr.Explain(ctx, err)
	}
	l := &listener{Listener: on, network: n, noticed: hostapi.IsNoticed(ctx)}
	n.mu.Lock()
	closed := n.box.Closed()
	if !closed {
		n.listeners[l] = struct{}{}
	}
	n.mu.Unlock()
	if closed {
		on.Close()
		return nil, sandbox.ErrClosed
	}
	return l, nil
}

// listenAddress returns an address in the form that shellbox.ListenHost has it.
func (n *Network) listenAddress(network, address string) (string, error) {
	if network == "unix" {
		return n.box.Path(address)
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

// A listener is closed with its box.
type listener struct {
	net.Listener
	network *Network
	noticed bool
	closed  atomic.Bool
}

// Accept returns connections that are closed with the box.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		c, err = l.network.track(c, l.noticed)
	}
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(),
			Err: l.acceptError(err)}
	}
	if l.noticed {
		l.network.box.Touch()
	}
	return c, nil
}

// acceptError returns why Accept has failed.
func (l *listener) acceptError(err error) error {
	switch {
	case l.closed.Load():
		return net.ErrClosed
	case l.network.box.Closed():
		return sandbox.ErrClosed
	}
	return err
}

// Close closes the listener. Accepted connections go on. Closing again does nothing.
func (l *listener) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.network.mu.Lock()
	_, open := l.network.listeners[l]
	delete(l.network.listeners, l)
	l.network.mu.Unlock()
	if !open { // the box's Close closes it
		return nil
	}
	return l.Listener.Close()
}
