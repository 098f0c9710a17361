//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/inspect"
	"github.com/sandshell/sandshell/internal/wire"
)

// kills returns how many of the box's processes the kernel has killed because memory had run out; 0 where nothing tells.
func (s *server) kills() int64 {
	if s.memory == nil {
		return 0
	}
	n, _ := s.memory.Kills()
	return n
}

// openMemory opens the counter of what the kernel kills.
func (s *server) openMemory() {
	var err error
	if s.memory, err = inspect.OpenOOMCounter(); err != nil {
		s.log.Info("nothing will tell what the kernel kills when memory runs out", "error", err)
	}
}

// A killCount is the count of kills from an offset in a shell's commands on: what it was when they came.
type killCount struct{ offset, kills int64 }

// killCounts are those of one program. Only changes are kept, and of them the latest: nobody asks for a command of long ago.
type killCounts struct {
	mu     sync.Mutex
	counts []killCount
}

const killCountsMax = 16

// note notes the count when commands of that offset have come, before the shell gets them.
func (k *killCounts) note(offset, kills int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.counts); n > 0 && k.counts[n-1].kills == kills {
		return
	}
	k.counts = append(k.counts, killCount{offset, kills})
	if len(k.counts) > killCountsMax {
		k.counts = append(k.counts[:0], k.counts[1:]...)
	}
}

// at returns the count when the command of that offset came.
func (k *killCounts) at(offset int64) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	count := k.counts[0]
	for _, c := range k.counts[1:] {
		if c.offset <= offset {
			count = c
		}
	}
	return count.kills
}

// countedCommands reads a shell's commands, and notes the count before each piece.
type countedCommands struct {
	io.Reader
	p *program
}

func (c countedCommands) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.p.killCounts.note(c.p.commands.total(), c.p.s.kills())
	}
	return n, err
}

// oomKills answers wire.OOMRequest.
func (s *server) oomKills(ask wire.OOM) (int64, error) {
	if s.memory == nil {
		return 0, errors.ErrUnsupported
	}
	s.mu.Lock()
	p := s.programs[ask.ID]
	s.mu.Unlock()
	if p == nil {
		return 0, fmt.Errorf("no program has the id %.40q", ask.ID)
	}
	return s.kills() - p.killCounts.at(ask.Since), nil
}
