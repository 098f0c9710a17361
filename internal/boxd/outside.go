//go:build linux

package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/boxd/outward"
	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// outwardThreads is how many threads an outward.Outward keeps: one that forks, one that answers,
// and the one of which Go's runtime then makes others.
const outwardThreads = 3

// startOutward starts what options.outward asks for. It comes before any program.
func (s *server) startOutward() error {
	if !s.outward {
		return nil
	}
	o, err := outward.Start(s.hasWayOut)
	if err != nil {
		return fmt.Errorf("connections to the outside cannot be brought to sandshell here: %w", err)
	}
	s.outside, s.children.fork = o, o.Fork
	return nil
}

// hasWayOut reports whether an owner takes the connections to the outside, and is there.
func (s *server) hasWayOut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		if l.outward {
			return s.connOfLocked(l.owner) != nil
		}
	}
	return false
}

// connOf returns a connection of an owner; nil if it has none.
func (s *server) connOf(o *owner) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connOfLocked(o)
}

func (s *server) connOfLocked(o *owner) *conn {
	for c := range s.conns {
		if c.owner == o && !c.cut() {
			return c
		}
	}
	return nil
}

// describe says where a connection is for, and whose it is.
func (s *server) describe(who *wire.Accept, c *outward.Conn) {
	who.To = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	who.Process, who.Program = c.Process, c.Program
	if c.Process != 0 {
		who.Session = s.sessionOf(c.Process)
	}
}

// mostAncestors bounds the way from a process to the program that it descends from.
const mostAncestors = 1000

// sessionOf returns the name of the program that a process descends from, or whose session it is
// in; "" if there is none.
func (s *server) sessionOf(pid int) string {
	names := map[int]string{}
	s.mu.Lock()
	for _, p := range s.programs {
		if p.name != "" {
			names[p.child.pid] = p.name
		}
	}
	s.mu.Unlock()
	for range mostAncestors {
		if name := names[pid]; name != "" {
			return name
		}
		parent, session := relatives(pid)
		if name := names[session]; name != "" {
			return name
		}
		if parent <= 1 {
			break
		}
		pid = parent
	}
	return ""
}

// relatives returns the ids of a process's parent and session; 0 if it has ended.
func relatives(pid int) (parent, session int) {
	text, _ := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	// The name, in parentheses, may hold anything.
	rest := text[bytes.LastIndexByte(text, ')')+1:]
	if words := strings.Fields(string(rest)); len(words) > 3 {
		parent, _ = strconv.Atoi(words[1])
		session, _ = strconv.Atoi(words[3])
	}
	return parent, session
}
