package sshconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
	"golang.org/x/crypto/ssh"
)

// Dial makes the server connect to an address as the user who has logged in. The network is "tcp",
// "tcp4", "tcp6" or "unix". With "tcp4" and "tcp6" the host is an IP address of that kind or
// "localhost". The server resolves other names as it likes.
//
// Errors are *net.OpError. If the server names an error of the system, they wrap it
// (syscall.ECONNREFUSED, fs.ErrNotExist, …). If the server refuses, explain may replace the error.
// lost returns the error of reads and writes after the SSH connection has ended.
func (c *Conn) Dial(ctx context.Context, network, address string, explain func(error) error,
	lost func() error) (net.Conn, error) {
	kind, extra, remote, err := forwarding(network, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: network, Addr: remote, Err: err}
	}
	if err := ctxerr.Of(ctx); err != nil {
		return nil, fail(err)
	}
	ch, requests, err := c.OpenChannel(ctx, kind, extra)
	if err != nil {
		return nil, fail(Refusal(explain(err)))
	}
	return c.newForwarded(ch, requests, localAddr(network), remote, lost), nil
}

// newForwarded makes a net.Conn of a channel. lost returns the error of its reads and writes after
// the SSH connection has ended.
func (c *Conn) newForwarded(ch ssh.Channel, requests <-chan *ssh.Request, local, remote net.Addr,
	lost func() error) net.Conn {
	f := &forwarded{Stream: NewStream(ch, c.Group), local: local, remote: remote}
	if KnowsCredit(string(c.Client.ServerVersion())) {
		f.Credit = FirstCredit
	}
	c.Run(func() { ssh.DiscardRequests(requests) })
	return &breakable{f, c, lost}
}

// forwarding returns the type and the extra data of the channel that reaches an address.
func forwarding(network, address string) (kind string, extra []byte, remote net.Addr, err error) {
	switch network {
	case "unix":
		if address == "" || address[0] != '/' {
			return "", nil, nil, fmt.Errorf("address %q: a socket's path is absolute", address)
		}
		// OpenSSH's PROTOCOL, section 2.4
		extra = ssh.Marshal(&struct {
			Path     string
			Reserved string
			Port     uint32
		}{Path: address})
		return "direct-streamlocal@openssh.com", extra, &net.UnixAddr{Name: address, Net: "unix"},
			nil
	case "tcp", "tcp4", "tcp6":
	default:
		return "", nil, nil, net.UnknownNetworkError(network)
	}
	name, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return "", nil, nil, &net.AddrError{Err: "the port is not a number from 0 to 65535",
			Addr: address}
	}
	if name == "" {
		name = "localhost"
	}
	if name == "localhost" {
		switch network {
		case "tcp4":
			name = "127.0.0.1"
		case "tcp6":
			name = "::1"
		}
	}
	if ip := net.ParseIP(name); ip != nil &&
		(network == "tcp4" && ip.To4() == nil || network == "tcp6" && ip.To4() != nil) {
		return "", nil, nil, &net.AddrError{Err: "not an address of " + network, Addr: address}
	}
	// RFC 4254, section 7.2
	extra = ssh.Marshal(&struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}{name, uint32(port), "127.0.0.1", 0})
	return "direct-tcpip", extra, hostPort{network, net.JoinHostPort(name, service)}, nil
}

// A hostPort is an address whose host is a name.
type hostPort struct{ network, address string }

func (a hostPort) Network() string { return a.network }
func (a hostPort) String() string  { return a.address }

// localAddr returns the address of this end of a forwarded connection, which is unknown.
func localAddr(network string) net.Addr {
	if network == "unix" {
		return &net.UnixAddr{Net: "unix"}
	}
	return &net.TCPAddr{IP: net.IPv4zero}
}

// refusals lists the texts of OpenSSH's strerror on systems with a POSIX libc.
var refusals = []struct {
	text  string
	errno syscall.Errno
}{
	{"Connection refused", syscall.ECONNREFUSED},
	{"Connection reset by peer", syscall.ECONNRESET}, // the server ended during the connect
	{"No such file or directory", syscall.ENOENT},
	{"Permission denied", syscall.EACCES},
	{"Network is unreachable", syscall.ENETUNREACH},
	{"Network unreachable", syscall.ENETUNREACH}, // musl
	{"No route to host", syscall.EHOSTUNREACH},
	{"Host is unreachable", syscall.EHOSTUNREACH}, // musl
	{"Connection timed out", syscall.ETIMEDOUT},
	{"Operation timed out", syscall.ETIMEDOUT}, // musl
	{"Address family not supported", syscall.EAFNOSUPPORT},
}

// Refusal explains the error of a server that refuses to connect. If the server's text is that of
// an error of the system, Refusal returns that error. Otherwise it adds the settings of the server
// that may be the cause.
func Refusal(err error) error {
	var open *ssh.OpenChannelError
	if !errors.As(err, &open) {
		return err
	}
	for _, r := range refusals {
		if strings.HasPrefix(open.Message, r.text) {
			return os.NewSyscallError("connect", r.errno)
		}
	}
	said := printable.Text(open.Message)
	switch open.Reason {
	case ssh.Prohibited:
		const settings = "AllowTcpForwarding, AllowStreamLocalForwarding and PermitOpen"
		return fmt.Errorf("the server does not forward the connection: %s: check %s in its "+
			"sshd_config", said, settings)
	case ssh.UnknownChannelType:
		return fmt.Errorf("the server does not know this kind of channel: %s: %w", said,
			errors.ErrUnsupported)
	}
	return fmt.Errorf("%s: %s", open.Reason, said)
}

// forwarded is a connection that the server has made.
type forwarded struct {
	*Stream
	local, remote net.Addr
}

var _ net.Conn = (*forwarded)(nil)

func (f *forwarded) Read(p []byte) (int, error) { return f.Out.Read(p) }
func (f *forwarded) LocalAddr() net.Addr        { return f.local }
func (f *forwarded) RemoteAddr() net.Addr       { return f.remote }

func (f *forwarded) Close() error {
	f.Stream.Close()
	return nil
}

// resetRequest asks boxd to reset a connection: wire.ResetRequest. Other servers refuse it.
const resetRequest = "reset@sandshell"

// Reset implements hostapi.Resetter, on a connection that boxd has announced.
func (f *forwarded) Reset() {
	f.Stream.CloseAfter(func() {
		// The end of the channel alone would be the end of the connection.
		_, _ = f.Stream.Channel.SendRequest(resetRequest, true, nil)
	})
}

func (f *forwarded) SetDeadline(t time.Time) error {
	f.SetReadDeadline(t)
	return f.SetWriteDeadline(t)
}

func (f *forwarded) SetReadDeadline(t time.Time) error {
	f.Out.deadline.set(t)
	return nil
}

func (f *forwarded) SetWriteDeadline(t time.Time) error {
	f.deadline.set(t)
	return nil
}

// A breakable is a forwarded connection whose errors tell which has ended: itself, or the SSH
// connection that carries it.
type breakable struct {
	*forwarded
	on   *Conn
	lost func() error // returns the error if the SSH connection has ended
}

func (b *breakable) Read(p []byte) (int, error) {
	n, err := b.forwarded.Read(p)
	return n, b.cause("read", err)
}

func (b *breakable) Write(p []byte) (int, error) {
	n, err := b.forwarded.Write(p)
	return n, b.cause("write", err)
}

// cause returns the cause of an error. When the SSH connection ends, the forwarded one seems to end
// by itself for a moment. So cause asks the server: if it answers, the SSH connection has not
// ended.
func (b *breakable) cause(op string, err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	select {
	case <-b.forwarded.closed:
		return err
	default:
	}
	select {
	case <-b.forwarded.closed:
		return err
	case <-b.on.Ping():
		return err
	case <-b.on.gone:
	}
	err = net.ErrClosed
	if !errors.Is(b.on.why, net.ErrClosed) { // the other side has ended it
		err = b.lost()
	}
	return &net.OpError{Op: op, Net: "ssh", Addr: b.RemoteAddr(), Err: err}
}
