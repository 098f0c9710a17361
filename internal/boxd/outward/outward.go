//go:build linux

package outward

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// An Outward asks about the connects of the programs that its Fork has started, and of their
// descendants. Its methods may be called concurrently.
type Outward struct {
	asked notifier
	forks chan func()
	names *names
	ways  *ways
	own   []netip.Addr // of the box itself, beside the loopback: a pod has one
	// ready reports whether somebody takes what the Listener accepts.
	ready      func() bool
	nameServer *nameServer
	ended      chan struct{} // closed when no program has the filter

	mu       sync.Mutex
	listener *Listener // nil: nobody serves the way out
}

// Start starts the name server, and a thread with the filter. ready is called for each connection
// to the outside, and must return at once: if it returns false, connect is refused.
//
// An error says what the machine lacks.
func Start(ready func() bool) (*Outward, error) {
	// Since Linux 5.19 no signal interrupts a connect that boxd looks at.
	return start(nameServerAddress, ready, unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
}

// start is Start with another address for the name server, and an argument for install.
func start(nameServer netip.AddrPort, ready func() bool, killable uintptr) (*Outward, error) {
	o := &Outward{forks: make(chan func()), names: newNames(), ways: newWays(), ready: ready,
		ended: make(chan struct{})}
	addresses, _ := net.InterfaceAddrs() // without a network there are no others
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			ip, _ := netip.AddrFromSlice(n.IP)
			o.own = append(o.own, ip.Unmap())
		}
	}
	var err error
	if o.nameServer, err = serveNames(nameServer, o.names); err != nil {
		return nil, err
	}
	installed := make(chan error)
	go o.fork(installed, killable)
	if err := <-installed; err != nil {
		o.nameServer.close()
		return nil, err
	}
	go o.answer()
	return o, nil
}

// fork installs the filter on its thread, and calls there what Fork wants. The thread ends with the
// goroutine, because nothing can take the filter away.
func (o *Outward) fork(installed chan<- error, killable uintptr) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The main thread never ends, and neither would the filter. While this goroutine has it,
		// another one gets another.
		another := make(chan error)
		go o.fork(another, killable)
		installed <- <-another
		runtime.UnlockOSThread()
		return
	}
	fd, err := install(killable)
	o.asked = notifier(fd)
	installed <- err
	if err != nil {
		return
	}
	for f := range o.forks {
		f()
	}
}

// Fork calls f, which starts a program, on the thread with the filter. f must not wait for anything
// that connects.
func (o *Outward) Fork(f func() (pid int, err error)) (pid int, err error) {
	done := make(chan struct{})
	o.forks <- func() {
		defer close(done)
		pid, err = f()
	}
	<-done
	return pid, err
}

// Close ends the name server, and the thread with the filter. No call of Fork may be under way, or
// follow. It returns when the last program with the filter has ended.
func (o *Outward) Close() {
	o.nameServer.close()
	close(o.forks)
	<-o.ended
}

// answer answers all questions of the kernel. It stays on one thread, which may become a caller's
// user for a moment.
func (o *Outward) answer() {
	runtime.LockOSThread()
	defer close(o.ended)
	defer unix.Close(int(o.asked))
	c := new(call)
	for o.asked.next(c) {
		o.asked.answer(c, o.decide(c))
	}
}

// decide says what becomes of a call. It never waits for the network.
func (o *Outward) decide(c *call) verdict {
	if c.length() < shortest || c.length() > longest { // it may be negative
		return goOn()
	}
	p, err := openCaller(c.thread)
	if err != nil {
		// It belongs to a user that boxd cannot become, or it hides its memory. The addresses of
		// names still lead here.
		o.openPorts()
		return goOn()
	}
	defer p.close()
	if !o.asked.valid(c) {
		return goOn()
	}
	bytes := make([]byte, min(c.length(), unix.SizeofSockaddrInet6))
	if p.read(bytes, c.address()) != nil {
		return goOn()
	}
	a, ok := parseInet(bytes)
	if !ok {
		return goOn()
	}
	l := o.serving()
	host, port, outside := o.destination(a.to, l)
	if !outside {
		return goOn()
	}
	switch protocolOf(p.protocol(c.descriptor())) {
	case udp:
		if a.to.Addr().IsLoopback() { // how programs find out which of their addresses to use
			return goOn()
		}
		if port != nameServerAddress.Port() {
			return refuse(unix.ENETUNREACH)
		}
		a.set(o.nameServer.address)
	case tcp:
		if port == nameServerAddress.Port() && !a.to.Addr().IsLoopback() {
			a.set(o.nameServer.address)
			break
		}
		if l == nil || !o.ready() {
			return refuse(unix.ECONNREFUSED)
		}
		s, err := p.status()
		if err != nil {
			return goOn()
		}
		way := o.ways.address(way{host, port, s.process}, s.program(c.thread))
		a.set(netip.AddrPortFrom(way, l.port))
	default:
		return goOn()
	}
	if bytes, offset := a.changed(); p.write(bytes, c.address()+offset) != nil {
		return o.replace(c, p, a)
	}
	return goOn()
}

// destination returns what an address stands for. outside is false if it is in the box.
func (o *Outward) destination(to netip.AddrPort, l *Listener) (host string, port uint16,
	outside bool) {
	ip := to.Addr()
	if l != nil && to.Port() == l.port {
		if way, _, ok := o.ways.find(ip); ok { // of an earlier call with the same memory
			return way.host, way.port, true
		}
	}
	if name := o.names.find(ip); name != "" {
		return name, to.Port(), true
	}
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip == broadcast ||
		slices.Contains(o.own, ip) {
		return "", 0, false
	}
	return ip.WithZone("").String(), to.Port(), true
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// A protocol is one that the Outward tells apart.
type protocol int

const (
	tcp protocol = iota + 1
	udp
)

// protocolOf returns the protocol that the kernel calls by a name; 0 for any other.
func protocolOf(name string) protocol {
	switch name {
	case "TCP", "TCPv6", "MPTCP", "MPTCPv6":
		return tcp
	case "UDP", "UDPv6":
		return udp
	}
	return 0
}

// replace connects a socket of boxd's in place of the caller's, whose memory cannot be changed. The
// caller loses the options of its socket, and its place in an epoll set.
func (o *Outward) replace(c *call, p *caller, a *inetAddress) verdict {
	flags, err := p.openFlags(c.descriptor())
	if err != nil {
		return refuse(unix.EHOSTUNREACH)
	}
	kind := unix.SOCK_STREAM
	if protocolOf(p.protocol(c.descriptor())) == udp {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(int(a.family), kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return refuse(unix.EHOSTUNREACH)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, a.sockaddr()); err != nil && err != unix.EINPROGRESS {
		return refuse(unix.ECONNREFUSED)
	}
	if flags&unix.O_NONBLOCK == 0 {
		if err := unix.SetNonblock(fd, false); err != nil {
			return refuse(unix.EHOSTUNREACH)
		}
	}
	if err := o.asked.replace(c, fd, flags&unix.O_CLOEXEC != 0); err != nil {
		return refuse(unix.EHOSTUNREACH)
	}
	return verdict{}
}

// serving returns the Listener; nil if there is none.
func (o *Outward) serving() *Listener {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listener
}

// explainPort adds to the error of a bind what to do about it.
func explainPort(err error, port uint16) error {
	return fmt.Errorf("listen on port %d of the box: %w: the sysctl "+
		"net.ipv4.ip_unprivileged_port_start of the box must be 0, as Docker 20.10 and later "+
		"set it, and no other program may use the port", port, err)
}
