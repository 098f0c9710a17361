//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/boxd/outward"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/programs"
	"golang.org/x/crypto/ssh"
)

// A listener is an address on which boxd listens for its owner. It belongs to boxd and not to the
// connection. If the connection is cut, the listener stays, and connections to it wait, until
// another owner asks for the address.
type listener struct {
	net.Listener
	id      string
	owner   *owner
	outward bool // its connections are those that programs make to the outside
	// room holds one value for each connection that was announced, and that the client has neither
	// accepted nor rejected.
	room  chan struct{}
	ended chan struct{} // closed when it ends
}

// maxListeners bounds the addresses on which boxd listens for its owner, and those for one guest's
// connection.
const maxListeners = 1000

// listenForOwner answers an owner's ListenRequest.
func (s *server) listenForOwner(o *owner, payload []byte) (address string, err error) {
	var what wire.Listen
	if err := json.Unmarshal(payload, &what); err != nil {
		return "", err
	}
	if what.Network == "unix" {
		what.Address = archive.ExpandHome(what.Address, s.homeDir())
	}
	// An owner without a connection may have been killed: its listener serves nobody.
	s.unlisten(func(l *listener) bool {
		return l.owner != o && l.isAt(what) && s.connOfLocked(l.owner) == nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	// The connection was cut before the client got the answer.
	if l := s.listeners[what.ID]; l != nil {
		return l.Addr().String(), nil
	}
	if len(s.listeners) >= maxListeners {
		return "", errTooMany
	}
	on, err := s.listenAt(what.Network, what.Address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) { // the client adds the rest itself
			err = op.Err
		}
		for _, l := range s.listeners {
			if errors.Is(err, syscall.EADDRINUSE) && l.isAt(what) {
				return "", fmt.Errorf("%w: %w", err, hostapi.ErrListens)
			}
		}
		return "", err
	}
	l := &listener{Listener: programs.Listener{Listener: on}, id: what.ID, owner: o,
		outward: what.Network == wire.OutwardNetwork,
		room:    make(chan struct{}, wire.ListenBacklog), ended: make(chan struct{})}
	s.listeners[l.id] = l
	go s.acceptForOwner(l)
	return l.Addr().String(), nil
}

// isAt reports whether the listener has the address of a ListenRequest.
func (l *listener) isAt(what wire.Listen) bool {
	if what.Network == wire.OutwardNetwork {
		return l.outward
	}
	return !l.outward && l.Addr().String() == what.Address
}

var errTooMany = errors.New("too many addresses are listened on")

// listenAt listens at an IP address and a port, or at a socket to which only the box's user may
// connect, or for what leaves the box. (Programs of other users may connect to the socket after a
// chmod.)
func (s *server) listenAt(network, address string) (net.Listener, error) {
	if network == wire.OutwardNetwork {
		if s.outside == nil {
			return nil, syscall.ENOTSUP
		}
		return s.outside.Listen()
	}
	private := func(_, _ string, c syscall.RawConn) error {
		if network != "unix" {
			return nil
		}
		// bind gives the file the mode of the socket
		return c.Control(func(fd uintptr) { syscall.Fchmod(int(fd), 0o600) })
	}
	return (&net.ListenConfig{Control: private}).Listen(context.Background(), network, address)
}

// unlisten ends the listeners for which end reports true.
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
		close(l.ended)
		l.Close()
	}
}

// acceptForOwner announces each connection to a listener, until the listener ends.
func (s *server) acceptForOwner(l *listener) {
	for {
		select {
		case l.room <- struct{}{}:
		case <-l.ended:
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
		go s.announceToOwner(l, accepted.(halfCloser))
	}
}

// announceToOwner announces a connection to the owner, and carries its data. If the owner's
// connection is cut before the answer, it announces the connection again on the next one, unless it
// leads outward: then a program waits for an answer.
func (s *server) announceToOwner(l *listener, accepted halfCloser) {
	defer accepted.Close()
	who := wire.Accept{ID: l.id}
	if origin, ok := accepted.RemoteAddr().(*net.TCPAddr); ok {
		who.Origin = origin.String()
	}
	leaves, isOutward := accepted.(*outward.Conn)
	if isOutward {
		s.describe(&who, leaves)
	}
	extra, _ := json.Marshal(who)
	var ch ssh.Channel
	var requests <-chan *ssh.Request
	var c *conn
	for ch == nil {
		var err error
		if isOutward {
			c = s.connOf(l.owner)
		} else {
			c = s.awaitOwner(l, c)
		}
		if c == nil || !c.countChannel() {
			err = &ssh.OpenChannelError{}
		} else if ch, requests, err = c.OpenChannel(wire.AcceptChannel, extra); err != nil {
			c.channels.Add(-1)
		}
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) || err != nil && isOutward {
			<-l.room
			if isOutward { // so that the program sees that its connection is refused
				reset(accepted)
			}
			return
		}
	}
	<-l.room
	defer c.channels.Add(-1)
	relay(ch, requests, accepted, c)
}

// awaitOwner waits for a connection of the listener's owner other than not. It returns nil if the
// listener ends first.
func (s *server) awaitOwner(l *listener, not *conn) *conn {
	for {
		s.mu.Lock()
		arrival := s.connAdded.Wait()
		for c := range s.conns {
			if c.owner == l.owner && c != not {
				s.mu.Unlock()
				return c
			}
		}
		s.mu.Unlock()
		select {
		case <-arrival:
		case <-l.ended:
			return nil
		}
	}
}
