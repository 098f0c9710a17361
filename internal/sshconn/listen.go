package sshconn

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// A Forward is an address on which the server listens for this side, with plain SSH. Conn.Listen
// makes one.
type Forward struct {
	*Listener
	on   *Conn
	lost func() error
	kind string // of the request: tcpip-forward or streamlocal-forward@openssh.com
	// host and port are those of the request. The server repeats them when it announces a
	// connection. For a socket, host is its path.
	host string
	port uint32
}

// forwards are the addresses on which the server listens. The zero value has none.
type forwards struct {
	mu    sync.Mutex
	all   []*Forward
	ended bool

	// The server chooses the port, and may announce a connection before this side has seen the
	// answer that contains the port.
	asking int              // requests under way
	early  []ssh.NewChannel // for unknown ports, announced while a request was under way
}

const (
	forwardTCP  = "tcpip-forward"
	forwardUnix = "streamlocal-forward@openssh.com"
)

// These are payloads of RFC 4254, section 7, and of OpenSSH's PROTOCOL, section 2.4.
type (
	addressPort struct {
		Host string
		Port uint32
	}
	socketPath   struct{ Path string }
	forwardedTCP struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	forwardedUnix struct{ Path, Reserved string }
)

// Listen makes the server listen on an address as the user who has logged in. With "unix" the
// address is the absolute path of a socket. With "tcp" it has a port, and a host that is an IP
// address, a name, or "" for all addresses. If the port is 0, the server chooses one.
//
// If the server refuses, the error is a *RefusedError, which does not say why. lost returns the
// error of Accept, and of accepted connections, after the SSH connection has ended. If ctx ends
// first and the server listens later, Listen makes the server stop, and then calls cancelled.
func (c *Conn) Listen(ctx context.Context, network, address string, lost func() error,
	cancelled func()) (*Forward, error) {
	f := &Forward{on: c, lost: lost, kind: forwardUnix, host: address}
	if network != "unix" {
		host, service, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(service, 10, 16)
		if err != nil {
			return nil, &net.AddrError{Err: "the port is not a number from 0 to 65535",
				Addr: address}
		}
		f.kind, f.host, f.port = forwardTCP, host, uint32(port)
	}
	c.forwards.addAsking(1)
	reply, err := c.RequestOrUndo(ctx, f.kind, f.payload(), func(reply []byte) {
		f.setChosenPort(reply)
		f.cancel()
		cancelled()
	})
	if err == nil {
		f.setChosenPort(reply)
		f.Listener = NewListener(f.address(network), lost)
		if !c.forwards.add(f) {
			err = ErrGone
		}
	}
	for _, ch := range c.forwards.addAsking(-1) {
		c.announceForwarded(ch)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Forward) payload() []byte {
	if f.kind == forwardUnix {
		return ssh.Marshal(&socketPath{f.host})
	}
	return ssh.Marshal(&addressPort{f.host, f.port})
}

// setChosenPort stores the port that the server has chosen, if it was to choose one.
func (f *Forward) setChosenPort(reply []byte) {
	var answer struct{ Port uint32 }
	if f.kind == forwardTCP && f.port == 0 && ssh.Unmarshal(reply, &answer) == nil {
		f.port = answer.Port
	}
}

func (f *Forward) address(network string) net.Addr {
	if network == "unix" {
		return Address(network, f.host)
	}
	return Address(network, net.JoinHostPort(f.host, strconv.Itoa(int(f.port))))
}

// Address returns an address as a net.Addr.
func Address(network, address string) net.Addr {
	if network == "unix" {
		return &net.UnixAddr{Name: address, Net: "unix"}
	}
	if a, err := netip.ParseAddrPort(address); err == nil {
		return net.TCPAddrFromAddrPort(a)
	}
	return hostPort{network, address}
}

// addAsking adds n to the number of requests under way. If none is left, it returns the channels
// that have come too early.
func (f *forwards) addAsking(n int) []ssh.NewChannel {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asking += n; f.asking > 0 {
		return nil
	}
	early := f.early
	f.early = nil
	return early
}

// add adds a listener. It returns false if the connection has ended.
func (f *forwards) add(l *Forward) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.all = append(f.all, l)
	}
	return !f.ended
}

// end ends all listeners, because the connection has ended.
func (f *forwards) end() {
	f.mu.Lock()
	all := f.all
	f.all, f.ended = nil, true
	f.mu.Unlock()
	for _, l := range all {
		l.End(l.lost())
	}
}

// announceForwarded passes a channel that the server opens to its listener.
func (c *Conn) announceForwarded(ch ssh.NewChannel) {
	f, remote, err := c.forwards.find(ch)
	switch {
	case err != nil:
		c.Reject(ch, ssh.Prohibited, err.Error())
	case f != nil:
		f.Announce(c, ch, remote)
	}
}

// find finds the listener of a channel. If there is none, but a request is under way, it keeps the
// channel in early and returns nil.
func (f *forwards) find(ch ssh.NewChannel) (*Forward, net.Addr, error) {
	var where func(*Forward) bool
	var remote net.Addr
	switch ch.ChannelType() {
	case "forwarded-tcpip":
		var to forwardedTCP
		if err := ssh.Unmarshal(ch.ExtraData(), &to); err != nil {
			return nil, nil, err
		}
		where = func(l *Forward) bool {
			return l.kind == forwardTCP && l.host == to.Host && l.port == to.Port
		}
		remote = &net.TCPAddr{IP: net.ParseIP(to.Origin), Port: int(to.OriginPort)}
	case "forwarded-streamlocal@openssh.com":
		var to forwardedUnix
		if err := ssh.Unmarshal(ch.ExtraData(), &to); err != nil {
			return nil, nil, err
		}
		where = func(l *Forward) bool { return l.kind == forwardUnix && l.host == to.Path }
		remote = localAddr("unix")
	default:
		return nil, nil, fmt.Errorf("unexpected channel type %s", ch.ChannelType())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.IndexFunc(f.all, where); i >= 0 {
		return f.all[i], remote, nil
	}
	if f.asking > 0 && len(f.early) < Backlog {
		f.early = append(f.early, ch)
		return nil, nil, nil
	}
	return nil, nil, fmt.Errorf("this client does not listen on that address")
}

// cancelLimit bounds the wait until the server stops listening.
const cancelLimit = 5 * time.Second

// Close makes the server stop listening, and waits until the address is free. Accepted connections
// stay open. Closing again does nothing.
func (f *Forward) Close() error {
	if !f.End(net.ErrClosed) {
		return nil
	}
	f.on.forwards.remove(f)
	return f.cancel()
}

func (f *forwards) remove(l *Forward) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(other *Forward) bool { return other == l })
}

func (f *Forward) cancel() error {
	ctx, done := context.WithTimeout(context.Background(), cancelLimit)
	defer done()
	_, err := f.on.Request(ctx, "cancel-"+f.kind, f.payload())
	if f.on.Ended() {
		return nil // the listener has ended with the connection
	}
	return err
}
