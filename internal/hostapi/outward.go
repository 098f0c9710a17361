package hostapi

import (
	"context"
	"fmt"
	"net"
)

// OutwardNetwork is a network of Listen of a shellbox.Box, without an address. Its connections are
// those that programs of the box make to the outside. Their RemoteAddr is a Leaving, and they have
// a Reset. If the Box's Host is no Outwarder, or cannot bring such connections, the error is
// errors.ErrUnsupported. There is one such listener at a time: else the error is
// syscall.EADDRINUSE.
const OutwardNetwork = "outward"

// An Outwarder is a shellbox.Host that may have been made so that what its programs connect to
// outside comes to this program.
type Outwarder interface {
	// ListenOutward returns the listener of OutwardNetwork. While there is none, programs get
	// ECONNREFUSED.
	ListenOutward(ctx context.Context) (net.Listener, error)
}

// A Leaving describes a connection to the outside. It is what the box says.
type Leaving struct {
	To      string // a name or an IP address, and a port
	Process int    // 0 if it is not known
	Program string // the name of the process's program; "" if it is not known
	Session string // the id of the session or job; "" if it is none, or not known
}

// Network implements net.Addr.
func (l Leaving) Network() string { return OutwardNetwork }

// String implements net.Addr.
func (l Leaving) String() string { return fmt.Sprintf("%s to %s", l.Program, l.To) }

// A Resetter is a connection of OutwardNetwork.
type Resetter interface {
	// Reset closes the connection so that the program reads an error, and not the end. It does not
	// wait.
	Reset()
}
