//go:build linux

package main

import (
	"strconv"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
)

// checkName returns an error if a program cannot have the name that its owner asks for.
func (s *server) checkName(start *wire.Start) error {
	if start.Name == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind, n := numbered(start.Name); start.New && n <= s.numbers[kind] {
		return &hostapi.NameTakenError{Next: s.numbers[kind] + 1}
	}
	for _, p := range s.programs {
		if p.name != start.Name || p.hasEnded() {
			continue
		}
		p.mu.Lock()
		released := p.released
		p.mu.Unlock()
		if !released {
			return syscall.EEXIST
		}
	}
	return nil
}

// numbered returns the parts of a name such as session-3. Other names have no number.
func numbered(name string) (kind string, n int) {
	kind, digits, _ := strings.Cut(name, "-")
	n, _ = strconv.Atoi(digits)
	return kind, n
}

// list returns the programs that an owner can continue. If shared is set, it returns those with
// notes, of all owners.
func (s *server) list(o *owner, shared bool) []wire.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []wire.Program{}
	for _, p := range s.programs {
		p.mu.Lock()
		theirs := shared && p.note != "" || !shared && p.owner == o
		if theirs && (!p.released || p.keepsLogLocked()) {
			listed := wire.Program{ID: p.id, Ended: p.hasEnded(), Rows: p.rows, Cols: p.cols,
				Commands: p.commands != nil, Name: p.name}
			if shared {
				listed.Note = []byte(p.note)
			}
			list = append(list, listed)
		}
		p.mu.Unlock()
	}
	return list
}
