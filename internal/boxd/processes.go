//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/internal/tty"
)

// answerQuestion answers a question about processes. known is false if the request is not such a
// question.
func (s *server) answerQuestion(o *owner, request string,
	payload []byte) (answer any, known bool, err error) {
	var pids []int
	var terminal int
	switch request {
	case wire.TreeRequest:
		if err = json.Unmarshal(payload, &pids); err == nil {
			answer = procfs.Tree(pids...)
		}
	case wire.AliveRequest:
		if err = json.Unmarshal(payload, &pids); err == nil {
			answer = procfs.Alive(pids...)
		}
	case wire.MarkedRequest:
		var word string
		if err = json.Unmarshal(payload, &word); err == nil {
			answer = procfs.Marked(word)
		}
	case wire.ResetModesRequest:
		if err = json.Unmarshal(payload, &terminal); err == nil {
			procfs.ResetModes(terminal)
		}
	case wire.UptimeRequest:
		answer, err = procfs.Uptime()
	case wire.StartedRequest:
		answer = s.started
	case wire.SignalRequest:
		var signal wire.Signal
		if err = json.Unmarshal(payload, &signal); err == nil {
			answer, err = procfs.Signal(signal.PIDs, signal.Signals...)
		}
	default:
		return s.answerProgramQuestion(o, request, payload)
	}
	return answer, true, err
}

// answerProgramQuestion answers a question about one program or process.
func (s *server) answerProgramQuestion(o *owner, request string,
	payload []byte) (answer any, known bool, err error) {
	var id string
	switch request {
	case wire.SettleRequest:
		var settle wire.Settle
		if err = json.Unmarshal(payload, &settle); err == nil {
			answer, err = s.settle(o, settle)
		}
	case wire.DiscardRequest:
		var discard wire.Discard
		if err = json.Unmarshal(payload, &discard); err == nil {
			answer, err = s.discard(o, discard)
		}
	case wire.LookRequest:
		if err = json.Unmarshal(payload, &id); err == nil {
			answer, err = s.look(id)
		}
	case wire.ShellRequest:
		if err = json.Unmarshal(payload, &id); err == nil {
			answer, err = s.shell(id)
		}
	case wire.InterruptRequest:
		if err = json.Unmarshal(payload, &id); err == nil {
			answer, err = s.interrupt(id)
		}
	case wire.OOMRequest:
		var ask wire.OOM
		if err = json.Unmarshal(payload, &ask); err == nil {
			answer, err = s.oomKillsSince(ask)
		}
	case wire.ProgramRequest:
		var pid int
		if err = json.Unmarshal(payload, &pid); err == nil {
			answer = environmentOf(pid)
		}
	default:
		return nil, false, nil
	}
	return answer, true, err
}

// settleLimit bounds each of the two waits of settle. A program that does not read what is typed
// never gets it, and one that prints without end is never settled.
const settleLimit = 20 * time.Millisecond

// settle waits until a program has received its input, and all output has been read from its
// terminal.
func (s *server) settle(o *owner, ask wire.Settle) (settled wire.Settled, err error) {
	p, err := s.onTerminal(ask.ID)
	if err != nil {
		return settled, err
	}
	from := p.sourceOf(o).in
	received := tty.Within(settleLimit, func() bool { return p.in.written(from, ask.Input) })
	read := tty.Within(settleLimit, func() bool { return p.master.reading.Done(p.master) })
	p.out.wake() // the client waits for it all
	settled.Busy, settled.Output = !received || !read, p.out.total()
	return settled, nil
}

// onTerminal returns the program with that id, which must be on a terminal.
func (s *server) onTerminal(id string) (*program, error) {
	s.mu.Lock()
	p := s.programs[id]
	s.mu.Unlock()
	if p == nil || p.master == nil {
		return nil, fmt.Errorf("no program on a terminal has the id %.40q", id)
	}
	return p, nil
}

// look says what the processes of a program's terminal do.
func (s *server) look(id string) (proc.Look, error) {
	p, err := s.onTerminal(id)
	if err != nil {
		return proc.Look{}, err
	}
	if p.hasEnded() {
		return proc.Look{Gone: true}, nil
	}
	return procfs.Look(p.child.pid), nil
}

// shell describes the shell that a program is.
func (s *server) shell(id string) (proc.Shell, error) {
	p, err := s.onTerminal(id)
	if err != nil || p.hasEnded() {
		return proc.Shell{}, err
	}
	return procfs.Shell(p.child.pid), nil
}

func (s *server) interrupt(id string) (sent bool, err error) {
	p, err := s.onTerminal(id)
	if err != nil {
		return false, err
	}
	return !p.hasEnded() && procfs.Interrupt(p.child.pid), nil
}

// hasEnded reports whether the program has ended. Then its process id may belong to another
// process.
func (p *program) hasEnded() bool {
	select {
	case <-p.child.ended:
		return true
	default:
		return false
	}
}

func environmentOf(pid int) (e wire.Environment) {
	dir, env := procfs.Program(pid)
	e.Dir = []byte(dir)
	for _, kv := range env {
		e.Env = append(e.Env, []byte(kv))
	}
	return e
}

// discardLimit bounds discard. It is reached only if input that was sent does not come, or if the
// terminal cannot be opened and something is being typed on it.
const discardLimit = time.Second

// A discarded counts the bytes that the Discards with a key have dropped.
type discarded struct {
	key   string
	bytes int
}

// discard drops the input of a program's terminal that no program has read: what is on its way from
// the client, what is queued, what is being typed and what the terminal holds. It returns the
// number of bytes.
func (s *server) discard(o *owner, ask wire.Discard) (dropped int, err error) {
	p, err := s.onTerminal(ask.ID)
	if err != nil {
		return 0, err
	}
	from := p.sourceOf(o).in
	p.in.drop(from, ask.Input)
	tty.Within(discardLimit, func() bool {
		// Ask before the flush, so that the flush includes what was typed.
		past := p.in.processed(from, ask.Input)
		dropped += p.keyboard.Discard(discardLimit, func() int { return procfs.Discard(p.tty) })
		return past
	})
	dropped += p.in.resetDropped()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.discarded.key != ask.Key {
		p.discarded = discarded{key: ask.Key}
	}
	p.discarded.bytes += dropped
	return p.discarded.bytes, nil
}
