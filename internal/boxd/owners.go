//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/procfs"
	"golang.org/x/sys/unix"
)

// An owner is a client that has claimed the box. It is known by its key alone. A box may have
// several: each has connections, listeners and Runs of its own. Sessions and jobs are the box's.
type owner struct {
	key     string // in SSH's wire format
	arrived int    // how many owners had come before
	logins  int    // how many connections it has made
	adopted bool   // by a claim that adopts
	watched bool   // a watchAway looks at it
}

// maxOwners bounds the owners of a box.
const maxOwners = 16

var errManyOwners = fmt.Errorf("%d programs use the box, and no more may", maxOwners)

// addOwner makes the claim's key an owner's. Unless the claim joins, it becomes the only one. A
// claim that adopts fails if the box has another owner.
func (s *server) addOwner(key string, claim wire.Claim) error {
	s.mu.Lock()
	o := s.owners[key]
	var left []*owner
	switch {
	case claim.Adopts && o == nil && s.ownedLocked():
		s.mu.Unlock()
		return errors.New("the box has an owner")
	case claim.Joins && o == nil && len(s.owners) >= maxOwners:
		longest := s.firstAwayLocked()
		if longest == nil {
			s.mu.Unlock()
			return errManyOwners
		}
		left = append(left, longest)
	case !claim.Adopts && !claim.Joins:
		for _, other := range s.owners {
			if other != o {
				left = append(left, other)
			}
		}
	}
	if o == nil {
		s.arrivals++
		o = &owner{key: key, arrived: s.arrivals, adopted: claim.Adopts}
		s.owners[key] = o
	}
	if len(s.owners) == 1+len(left) && !claim.Joins { // the only owner has all programs
		for _, p := range s.programs {
			p.mu.Lock()
			p.owner, p.clean = o, false
			p.mu.Unlock()
		}
	}
	s.mu.Unlock()
	s.dropOwners(left...)
	s.watchOwners()
	return nil
}

// ownedLocked reports whether the box has an owner. An owner that has adopted the box and has never
// logged in does not count: it has only found out that boxd has been replaced.
func (s *server) ownedLocked() bool {
	for _, o := range s.owners {
		if !o.adopted || o.logins > 0 {
			return true
		}
	}
	return false
}

// firstAwayLocked returns the owner that came first of those without a connection, or nil.
func (s *server) firstAwayLocked() (first *owner) {
	for _, o := range s.owners {
		if !s.connectedLocked(o) && (first == nil || o.arrived < first.arrived) {
			first = o
		}
	}
	return first
}

// connectedLocked reports whether an owner has a connection.
func (s *server) connectedLocked(o *owner) bool {
	for c := range s.conns {
		if c.owner == o {
			return true
		}
	}
	return false
}

// dropOwners removes owners with all that is theirs. The sessions that they have used are free, and
// jobs go on.
func (s *server) dropOwners(left ...*owner) {
	if len(left) == 0 {
		return
	}
	var theirs []*program
	s.mu.Lock()
	for _, o := range left {
		if s.owners[o.key] == o {
			delete(s.owners, o.key)
		}
	}
	for _, p := range s.programs {
		p.mu.Lock()
		for _, o := range left {
			delete(p.sources, o)
		}
		if slices.Contains(left, p.owner) {
			if p.owner, p.clean = nil, false; p.note == "" {
				theirs = append(theirs, p)
			}
		}
		p.turn.Send()
		p.mu.Unlock()
	}
	s.mu.Unlock()
	s.closeConns(func(c *conn) bool { return slices.Contains(left, c.owner) })
	s.unlisten(func(l *listener) bool { return slices.Contains(left, l.owner) })
	for _, p := range theirs {
		if !p.hasEnded() {
			for _, of := range procfs.Tree(p.child.pid) {
				unix.Kill(of.PID, unix.SIGKILL)
			}
		}
		p.release()
	}
}

// awayLooks is how often watchAway looks at an owner before it drops it.
const awayLooks = 10

// watchOwners begins to watch the owners without a connection, if there are several. It tells the
// others that they are not alone.
func (s *server) watchOwners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owners) < 2 {
		return
	}
	for _, o := range s.owners {
		if !o.watched && !s.connectedLocked(o) {
			o.watched = true
			go s.watchAway(o, 0, o.logins)
		}
	}
	for c := range s.conns {
		if c.owner != nil {
			go c.SendRequest(wire.OwnersRequest, false, nil)
		}
	}
}

// watchAway looks whether an owner is away, for the nth time since a login. It drops one that has
// been away for as long as the box outlasts its owner. It counts looks, because boxd may have been
// paused.
func (s *server) watchAway(o *owner, n, login int) {
	s.mu.Lock()
	if o.logins != login { // it was here between two looks
		n, login = 0, o.logins
	}
	over := s.connectedLocked(o) || s.owners[o.key] != o || len(s.owners) < 2
	drop, pause := !over && n == awayLooks, s.linger/awayLooks
	if over {
		o.watched = false
	}
	if drop {
		delete(s.owners, o.key)
	}
	s.mu.Unlock()
	switch {
	case drop:
		s.log.Info("an owner has been away for too long")
		s.dropOwners(o)
	case !over:
		time.AfterFunc(pause, func() { s.watchAway(o, n+1, login) })
	}
}

// addConn adds c to the connections. It reports false if the box is about to end, or if c's key was
// an owner's during the login and no longer is.
func (s *server) addConn(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.role == ownerRole {
		c.owner = s.owners[c.key]
	}
	if s.stopping || c.role == ownerRole && c.owner == nil {
		return false
	}
	s.conns[c] = struct{}{}
	s.connAdded.Send()
	if c.owner != nil {
		c.owner.logins++
		if s.lingerTimer != nil {
			s.lingerTimer.Stop()
		}
	}
	return true
}

// closeConns closes the connections for which end reports true.
func (s *server) closeConns(end func(*conn) bool) {
	s.mu.Lock()
	var ended []*conn
	for c := range s.conns {
		if end(c) {
			ended = append(ended, c)
		}
	}
	s.mu.Unlock()
	for _, c := range ended {
		c.Close()
	}
}

// removeConn removes c from the connections. If it was the last one of all owners, the box ends
// after the time that it lingers, unless it is kept.
func (s *server) removeConn(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	for c := range s.conns {
		if c.owner != nil {
			s.mu.Unlock()
			s.watchOwners()
			return
		}
	}
	if c.owner != nil && s.lingerTimer != nil {
		s.lingerTimer.Reset(s.linger)
	}
	s.mu.Unlock()
}
