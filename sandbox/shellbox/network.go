package shellbox

import (
	"context"
	"net"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/network"
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

// Dial implements sandbox.Sandbox. The connection ends with the box.
func (b *Box) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return b.network.Dial(ctx, network, address)
}

// Listen implements sandbox.Sandbox. The host must be a [ListenHost]. The listener and its
// connections end with the box.
func (b *Box) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return b.network.Listen(ctx, network, address)
}

// newNetwork returns the network of the box.
func (b *Box) newNetwork() *network.Network {
	box := network.Box{
		Name:   b.String(),
		Unix:   b.owner == nil,
		Call:   b.beginCall,
		Path:   b.filePath,
		Expand: b.files.Expand,
		Closed: b.isClosed,
		Touch:  b.touch,
		Dial:   b.host.Dial,
	}
	if host, ok := b.host.(ListenHost); ok {
		box.Listen = host.Listen
	}
	// What other users' programs do is not for a view of one user.
	if host, ok := b.host.(hostapi.Outwarder); ok && b.owner == nil {
		box.ListenOutward = host.ListenOutward
	}
	return network.New(box)
}
