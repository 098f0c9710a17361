package sshconn

import (
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A Listener is a net.Listener of the connections that a server announces. A waiting connection is
// a channel that the server has opened and that this side has not accepted yet. It costs little,
// because the server sends nothing on it before it is accepted.
type Listener struct {
	// Address is where the server listens. It must be set before Accept is called.
	Address net.Addr
	// lost returns the error of a connection's reads and writes after its SSH connection has ended.
	lost func() error

	mu      sync.Mutex
	change  *sync.Cond // broadcast when waiting or err changes
	waiting []announced
	err     error         // why the Listener has ended; nil until then
	ended   chan struct{} // closed when it has ended
}

// announced is a connection that waits for Accept.
type announced struct {
	on     *Conn
	ch     ssh.NewChannel
	remote net.Addr
}

// Backlog is how many connections can wait for Accept. Further ones are rejected.
const Backlog = 128

// NewListener makes a Listener without connections. lost returns the error of a connection's reads
// and writes after its SSH connection has ended.
func NewListener(addr net.Addr, lost func() error) *Listener {
	l := &Listener{Address: addr, lost: lost, ended: make(chan struct{})}
	l.change = sync.NewCond(&l.mu)
	return l
}

// Announce adds a connection. If the Listener has ended, or if Backlog connections wait, Announce
// rejects it. remote is the address of the program that has connected.
func (l *Listener) Announce(on *Conn, ch ssh.NewChannel, remote net.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := l.waiting[:0]
	for _, a := range l.waiting {
		if !a.on.Ended() {
			live = append(live, a)
		}
	}
	clear(l.waiting[len(live):])
	l.waiting = live
	a := announced{on, ch, remote}
	if l.err != nil || len(l.waiting) >= Backlog {
		a.reject()
		return
	}
	l.waiting = append(l.waiting, a)
	l.change.Signal()
}

// reject rejects the connection, without waiting for the network.
func (a announced) reject() {
	a.on.Reject(a.ch, ssh.ConnectionFailed, "nobody accepts it")
}

// Accept waits for a connection and returns it. After End it returns the error that End was given.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		a, err := l.next()
		if err != nil {
			return nil, err
		}
		o := a.on.openInBackground(l.ended, func() opened {
			ch, requests, err := a.ch.Accept()
			return opened{ch, requests, err}
		})
		if o.err == nil {
			return a.on.newForwarded(o.ch, o.requests, l.Address, a.remote, l.lost), nil
		}
		// Its SSH connection has ended, or the Listener has.
	}
}

func (l *Listener) next() (announced, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) == 0 && l.err == nil {
		l.change.Wait()
	}
	if l.err != nil {
		return announced{}, l.err
	}
	a := l.waiting[0]
	l.waiting = l.waiting[1:]
	return a, nil
}

// End ends the Listener: Accept returns err, and waiting connections are rejected. Accepted
// connections stay open. End reports whether this was the first call; later calls do nothing.
func (l *Listener) End(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.err = err
	close(l.ended)
	for _, a := range l.waiting {
		a.reject()
	}
	l.waiting = nil
	l.change.Broadcast()
	return true
}

// Addr returns where the server listens.
func (l *Listener) Addr() net.Addr { return l.Address }
