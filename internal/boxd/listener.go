//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	programs "github.com/sandshell/sandshell/sandbox/shellbox/program"
	"golang.org/x/crypto/ssh"
)

// A listener is an address on which boxd listens for its owner. It is boxd's and not the
// connection's: when that is cut, the listener stays, and what connects meanwhile waits.
type listener struct {
	net.Listener
	id string
	// has something for each connection that is announced and neither accepted nor rejected
	room chan struct{}
	over chan struct{} // closed when it ends
}

// maxListeners is on how many addresses boxd listens for its owner, and for one guest's connection.
const maxListeners = 1000

// listenFor answers a ListenRequest.
func (s *server) listenFor(payload []byte) (address string, err error) {
	var what wire.Listen
	if err := json.Unmarshal(payload, &what); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.listeners[what.ID]; l != nil { // the connection was cut before the answer had come
		return l.Addr().String(), nil
	}
	if len(s.listeners) >= maxListeners {
		return "", errTooMany
	}
	if what.Network == "unix" {
		what.Address = archive.ExpandHome(what.Address, s.homeDir())
	}
	on, err := listenAt(what.Network, what.Address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) { // the client knows the rest
			err = op.Err
		}
		return "", err
	}
	l := &listener{Listener: programs.Listener{Listener: on}, id: what.ID,
		room: make(chan struct{}, wire.ListenBacklog), over: make(chan struct{})}
	s.listeners[l.id] = l
	go s.acceptFor(l)
	return l.Addr().String(), nil
}

var errTooMany = errors.New("too many addresses are listened on")

// listenAt listens at an IP address and a port, or at a socket that only the box's user may connect
// to. (Programs as other users get the right with chmod.)
func listenAt(network, address string) (net.Listener, error) {
	private := func(_, _ string, c syscall.RawConn) error {
		if network != "unix" {
			return nil
		}
		// bind takes the mode from there
		return c.Control(func(fd uintptr) { syscall.Fchmod(int(fd), 0o600) })
	}
	return (&net.ListenConfig{Control: private}).Listen(context.Background(), network, address)
}

// unlisten ends the listeners that end says.
func (s *server) unlisten(end func(*listener) bool) {
	s.mu.Lock()
	var ended []*listener
	for id, l := range s.listeners {
		if end(l) {
			delete(s.listeners, id)
			ended = append(ended, l)
		}
	}
	s.mu.Unlock()
	for _, l := range ended {
		close(l.over)
		l.Close()
	}
}

// acceptFor announces each connection that comes, until the listener ends.
func (s *server) acceptFor(l *listener) {
	for {
		select {
		case l.room <- struct{}{}:
		case <-l.over:
			return
		}
		accepted, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, for example
			<-l.room
			s.log.Warn("accept", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		go s.announce(l, accepted.(halfCloser))
	}
}

// announce announces a connection to the owner, and carries its data. When the owner's connection
// is cut before the answer has come, it is announced on the next one.
func (s *server) announce(l *listener, accepted halfCloser) {
	defer accepted.Close()
	who := wire.Accept{ID: l.id}
	if origin, ok := accepted.RemoteAddr().(*net.TCPAddr); ok {
		who.Origin = origin.String()
	}
	extra, _ := json.Marshal(who)
	var ch ssh.Channel
	var requests <-chan *ssh.Request
	var c *conn
	for ch == nil {
		var err error
		if c = s.ownersConn(l.over, c); c == nil {
			<-l.room
			return
		}
		if !c.enter() {
			err = &ssh.OpenChannelError{}
		} else if ch, requests, err = c.OpenChannel(wire.AcceptChannel, extra); err != nil {
			c.open.Add(-1)
		}
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) {
			<-l.room
			return
		}
	}
	<-l.room
	defer c.open.Add(-1)
	relay(ch, requests, accepted, c)
}

// ownersConn waits for a connection of the owner's, other than not; nil if over is closed before
// there is one.
func (s *server) ownersConn(over <-chan struct{}, not *conn) *conn {
	for {
		s.mu.Lock()
		arrival := s.arrival
		for c := range s.conns {
			if c.owner && c != not {
				s.mu.Unlock()
				return c
			}
		}
		s.mu.Unlock()
		select {
		case <-arrival:
		case <-over:
			return nil
		}
	}
}
