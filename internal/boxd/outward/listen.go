//go:build linux

package outward

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/procfs/sockdiag"
	"github.com/sandshell/sandshell/internal/programs"
	"golang.org/x/sys/unix"
)

// A Listener takes the connections to the outside. It is a net.Listener.
type Listener struct {
	o        *Outward
	port     uint16 // where connections are turned to
	accepted chan *net.TCPConn
	ended    chan struct{}
	working  sync.WaitGroup
	close    sync.Once

	diagnosing sync.Mutex
	diag       sockdiag.Conn

	mu      sync.Mutex
	sockets []net.Listener
	ports   bool // openPorts has been called
	closed  bool
}

// A Conn is a connection to the outside.
type Conn struct {
	*net.TCPConn
	Host    string // a name or an IP address
	Port    uint16
	Process int    // 0 if it is not known
	Program string // its name; "" if it is not known
}

// acceptPause is the pause after an error of the kernel's.
const acceptPause = 100 * time.Millisecond

// Listen begins to take connections. If there is a Listener, the error is EADDRINUSE.
func (o *Outward) Listen() (*Listener, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listener != nil {
		return nil, &net.OpError{Op: "listen", Net: "outward", Err: syscall.EADDRINUSE}
	}
	l := &Listener{o: o, accepted: make(chan *net.TCPConn), ended: make(chan struct{})}
	// Only the box's own programs can connect to 127.0.0.0/8, and Accept takes no others.
	on, err := l.open(0)
	if err != nil {
		return nil, err
	}
	l.port = on
	o.listener = l
	return l, nil
}

// open listens on a port of all addresses, and returns the port.
func (l *Listener) open(port uint16) (uint16, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	on, err := config.Listen(context.Background(), "tcp4",
		netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = on.Close()
		return 0, net.ErrClosed
	}
	l.sockets = append(l.sockets, programs.Listener{Listener: on})
	l.working.Go(func() {
		for {
			c, err := on.Accept()
			if err != nil {
				if errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(acceptPause) // out of descriptors, for example
				continue
			}
			select {
			case l.accepted <- c.(*net.TCPConn):
			case <-l.ended:
				Reset(c)
				return
			}
		}
	})
	return uint16(on.Addr().(*net.TCPAddr).Port), nil
}

// webPorts are those at which the addresses of names are listened at, for programs that the filter
// does not serve.
var webPorts = []uint16{80, 443}

// openPorts listens where programs connect to whose connects boxd cannot change. It does so only
// when there is such a program, because a program of the box may want the ports for itself.
func (o *Outward) openPorts() {
	l := o.serving()
	if l == nil {
		return
	}
	l.mu.Lock()
	done := l.ports
	l.ports = true
	l.mu.Unlock()
	if done {
		return
	}
	for _, port := range webPorts {
		_, _ = l.open(port) // or the box's own server has it
	}
}

// Accept returns a *Conn. It drops connections that have been closed again.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		select {
		case tcp := <-l.accepted:
			if c := l.identify(tcp); c != nil {
				return c, nil
			}
			Reset(tcp)
		case <-l.ended:
			return nil, net.ErrClosed
		}
	}
}

// identify returns what a connection is for; nil if it is for nothing, or dead.
func (l *Listener) identify(tcp *net.TCPConn) *Conn {
	local := tcp.LocalAddr().(*net.TCPAddr).AddrPort()
	to, program, ok := l.o.ways.find(local.Addr().Unmap())
	if !ok || local.Port() != l.port {
		to, program = way{l.o.names.find(local.Addr().Unmap()), local.Port(), 0}, ""
	}
	if to.host == "" || l.dead(tcp) {
		return nil
	}
	return &Conn{TCPConn: tcp, Host: to.host, Port: to.port, Process: to.process, Program: program}
}

// dead reports whether the program has closed a connection, and has sent nothing. If it has only
// ended its own direction, it waits for an answer.
func (l *Listener) dead(tcp *net.TCPConn) bool {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	broken, silent := false, false
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}}
		_, _ = unix.Poll(poll, 0)
		broken = poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		if poll[0].Revents&unix.POLLRDHUP != 0 {
			n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
			silent = err == nil && n == 0
		}
	})
	if err != nil || broken || !silent {
		return err != nil || broken
	}
	local, remote := tcp.LocalAddr().(*net.TCPAddr), tcp.RemoteAddr().(*net.TCPAddr)
	l.diagnosing.Lock()
	defer l.diagnosing.Unlock()
	return l.diag.TCPClosed(remote.AddrPort(), local.AddrPort())
}

// Addr returns where connections are turned to.
func (l *Listener) Addr() net.Addr {
	return &net.TCPAddr{IP: wayBlock.Addr().AsSlice(), Port: int(l.port)}
}

// Close ends the Listener. Programs get ECONNREFUSED from then on. Closing again does nothing.
func (l *Listener) Close() error {
	l.close.Do(func() {
		l.o.mu.Lock()
		l.o.listener = nil
		l.o.mu.Unlock()
		close(l.ended)
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		for _, on := range l.sockets {
			_ = on.Close()
		}
		l.working.Wait()
		l.diagnosing.Lock()
		l.diag.Close()
		l.diagnosing.Unlock()
	})
	return nil
}

// Reset closes a connection so that the program reads an error, and not the end.
func Reset(c net.Conn) {
	if tcp, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
