//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/inspect"
	"github.com/sandshell/sandshell/internal/tty"
	"github.com/sandshell/sandshell/internal/wire"
)

// processes answers one of the questions about processes. known is false if the request is none.
func (s *server) processes(request string, payload []byte) (answer any, known bool, err error) {
	var pids []int
	var terminal int
	switch request {
	case wire.TreeRequest:
		if err = json.Unmarshal(payload, &pids); err == nil {
			answer = inspect.Tree(pids...)
		}
	case wire.AliveRequest:
		if err = json.Unmarshal(payload, &pids); err == nil {
			answer = inspect.Alive(pids...)
		}
	case wire.MarkedRequest:
		var word string
		if err = json.Unmarshal(payload, &word); err == nil {
			answer = inspect.Marked(word)
		}
	case wire.ModesRequest:
		if err = json.Unmarshal(payload, &terminal); err == nil {
			answer = inspect.Modes(terminal)
		}
	case wire.ResetModesRequest:
		if err = json.Unmarshal(payload, &terminal); err == nil {
			inspect.ResetModes(terminal)
		}
	case wire.UptimeRequest:
		answer, err = inspect.Uptime()
	case wire.SignalRequest:
		var signal wire.Signal
		if err = json.Unmarshal(payload, &signal); err == nil {
			answer, err = inspect.Signal(signal.PIDs, signal.Signals...)
		}
	case wire.SettleRequest:
		var settle wire.Settle
		if err = json.Unmarshal(payload, &settle); err == nil {
			answer, err = s.settle(settle)
		}
	default:
		return nil, false, nil
	}
	return answer, true, err
}

// settleLimit bounds each of the two waits of settle. A program that does not read what is typed is never given it, and one that prints without end is never
// settled.
const settleLimit = 20 * time.Millisecond

// settle waits until a program has been given its input and its terminal has no output that has not been taken, and returns how much output there is.
func (s *server) settle(ask wire.Settle) (output int64, err error) {
	s.mu.Lock()
	p := s.programs[ask.ID]
	s.mu.Unlock()
	if p == nil || p.master == nil {
		return 0, fmt.Errorf("no program on a terminal has the id %.40q", ask.ID)
	}
	tty.Within(settleLimit, func() bool { return p.in.given(ask.Input) })
	tty.Within(settleLimit, func() bool { // output that was taken from the terminal is counted a moment later: hence the same total twice
		before := output
		output = p.out.total()
		return !tty.Readable(p.master) && output == before
	})
	return output, nil
}
