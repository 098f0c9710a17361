package wire

// A Listen says where boxd is to listen. If there is a listener with that ID, boxd ignores the
// other fields.
type Listen struct {
	ID               string
	Network, Address string // as for net.Listen
}

// OutwardNetwork is the network of a Listen without address: the connections that programs make to
// the outside. There is one such listener, and only if boxd serves with -outward. Its connections
// do not wait for an owner that is away: they are refused.
const OutwardNetwork = "outward"

// An Accept describes a connection to a listener.
type Accept struct {
	ID     string // the listener's
	Origin string // the address of the other end; "" if it has none

	// Of a connection to the outside:
	To      string `json:",omitempty"` // where it is for: a name or an IP address, and a port
	Process int    `json:",omitempty"` // whose connection it is; 0 if that is not known
	Program string `json:",omitempty"` // the name of the process's program
	Session string `json:",omitempty"` // the Start.Name that the process descends from
}

// ListenBacklog is how many connections to one listener boxd announces before the client has
// accepted or rejected them.
const ListenBacklog = 128
