//go:build linux

package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/inspect"
	"github.com/sandshell/sandshell/internal/tty"
	"github.com/sandshell/sandshell/internal/wire"
)

// settleLimit bounds the time that a look waits for input and output that are on their way within boxd. A program may leave its input unread, or
// print without end.
const settleLimit = 20 * time.Millisecond

// inspect answers a question about processes.
func (s *server) inspect(ask *wire.Inspect) (*wire.Inspected, error) {
	p := s.terminalOf(ask.Request)
	if p != nil {
		tty.Within(settleLimit, func() bool { return p.in.given(int64(ask.Input)) })
	}
	answer, err := inspect.Answer(ask.Request)
	if err != nil || p == nil {
		return &wire.Inspected{Answer: answer}, err
	}
	var total int64
	tty.Within(settleLimit, func() bool { // what had been written before the look is in the output when the terminal has nothing more, twice
		before := total
		total = p.out.total()
		return !tty.Readable(p.master) && total == before
	})
	return &wire.Inspected{Answer: answer, Output: uint64(total)}, nil
}

// terminalOf returns the program whose tree of processes a request asks for, nil if there is none or it has no terminal.
func (s *server) terminalOf(request string) *program {
	text, ok := strings.CutPrefix(request, "tree ")
	pid, err := strconv.Atoi(text)
	if !ok || err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.programs {
		if p.child.pid == pid && p.master != nil {
			return p
		}
	}
	return nil
}
