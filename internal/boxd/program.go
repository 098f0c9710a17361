//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/internal/tty"
	"golang.org/x/crypto/ssh"
)

// A program is one that an owner has started. If the owner's connection is cut, the program goes
// on, and waits for the next connection. A program with a note is the box's: other owners may use
// it.
type program struct {
	s      *server
	id     string
	name   string // Start.Name
	child  *child
	master *direct // of its terminal; nil if it has none
	in     *input
	out    *output
	err    *output // nil with a terminal

	tty      int                // the terminal's number
	keyboard *programs.Keyboard // nil without a terminal
	commands *input             // nil unless the standard input is a pipe for a shell's commands
	pipe     *direct            // of the commands

	killCounts killCounts
	report     atomic.Pointer[wire.Report] // the latest; nil: none
	allRead    atomic.Int64                // bytes of input when programs had last read all of it
	shell      atomic.Pointer[proc.Shell]  // as it was at its first marker; nil: none yet

	mu         sync.Mutex
	discarded  discarded
	note       string
	rows, cols int
	owner      *owner // the one that has started it, or uses it; nil: none
	clean      bool   // the last owner was idle when it yielded the program
	spooled    bool   // owners may follow it beside each other; constant
	attached   map[*owner]*attachment
	sources    map[*owner]sources
	asked      uint64                   // the number of the last wire.WantedRequest
	wanted     map[uint64]chan struct{} // closed when the owner refuses
	turn       broadcast.Signal         // sent when owner or attached has changed
	released   bool
	forgotten  bool // its log is not kept, even if it is a job's
}

// serveProgram serves a ProgramChannel.
func (c *conn) serveProgram(newChannel ssh.NewChannel) {
	ch, requests, err := newChannel.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	open, early, err := (*wire.Open)(nil), len(newChannel.ExtraData()) > 0, error(nil)
	if early {
		open, err = wire.ParseOpen(newChannel.ExtraData())
	} else {
		open, err = wire.ReadOpen(ch)
	}
	var p *program
	var clean bool
	if err == nil {
		p, err = c.s.program(c.owner, open)
		if err == nil && !p.spooled {
			clean, err = p.takeTurn(c.owner, open.Take)
		}
	} else if unfinished(err) {
		// The connection was cut, and the client asks again. If the other direction still works,
		// the client would take an answer for the program's.
		go ssh.DiscardRequests(requests)
		return
	}
	if err != nil {
		go ssh.DiscardRequests(requests)
		wire.Send(ch, wire.FailedRequest, wire.Fail(err).Encode())
		return
	}
	p.attach(c.owner, ch, requests, open, clean, early)
}

// unfinished reports whether a read ended too early.
func unfinished(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// program returns the program with that id. If there is none and the request describes one, program
// starts it.
func (s *server) program(o *owner, open *wire.Open) (*program, error) {
	if open.Start != nil {
		s.noteMark(texts(open.Start.Env)) // it may take long, so before starting is locked
	}
	// A client whose connection was cut may ask again before its first request has been handled.
	s.starting.Lock()
	defer s.starting.Unlock()
	s.mu.Lock()
	p := s.programs[open.ID]
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	if open.Start == nil {
		return nil, os.ErrNotExist
	}
	if err := s.checkName(open.Start); err != nil {
		return nil, err
	}
	p, err := s.startProgram(open.ID, open.Start)
	if err != nil {
		return nil, err
	}
	p.owner, p.name = o, open.Start.Name
	if p.commands != nil && len(open.Start.First) > 0 {
		p.commands.enqueue(p.sourceOf(o).commands, open.Start.First, new(attachment))
	}
	s.mu.Lock()
	s.programs[open.ID] = p
	if kind, n := numbered(p.name); n > 0 {
		s.numbers[kind] = max(s.numbers[kind], n)
	}
	s.mu.Unlock()
	return p, nil
}

func texts(list [][]byte) []string {
	var all []string
	for _, b := range list {
		all = append(all, string(b))
	}
	return all
}

func (s *server) startProgram(id string, start *wire.Start) (*program, error) {
	args := texts(start.Args)
	if len(args) == 0 {
		return nil, syscall.EINVAL
	}
	prepared, err := s.prepare(request{args: args, dir: string(start.Dir), env: texts(start.Env),
		user: start.User, replaceEnv: start.ReplaceEnv})
	if err != nil {
		return nil, err
	}
	p := &program{s: s, id: id, in: newInput(), rows: start.Rows, cols: start.Cols,
		spooled: start.Spool > 0, attached: map[*owner]*attachment{},
		sources: map[*owner]sources{}, wanted: map[uint64]chan struct{}{}}
	p.killCounts.note(0, s.oomKillCount())
	if start.Spool > 0 {
		if p.out, err = newSpool(start.Spool); err != nil {
			return nil, err
		}
	} else if start.Rows > 0 {
		p.out = newOutput(terminalHistory)
	} else {
		p.out = newOutput(0)
	}
	if start.Rows > 0 {
		err = p.onTerminal(prepared, start.Commands)
	} else {
		err = p.onPipes(prepared, start.Joined, start.Spool)
	}
	if err != nil {
		p.freeOutputs()
		return nil, err
	}
	go func() {
		<-p.child.ended
		p.forgetIfDone()
	}()
	return p, nil
}

func (p *program) start(what *prepared, streams [3]*os.File, terminal bool) (err error) {
	if p.child, err = p.s.children.start(what, streams, terminal); err != nil {
		return &os.PathError{Op: "execute", Path: what.path, Err: err}
	}
	return nil
}

func (p *program) onTerminal(what *prepared, commands bool) error {
	terminal, end, err := programs.OpenTerminal(p.rows, p.cols)
	if err != nil {
		return err
	}
	defer end.Close()
	master, err := newDirect(terminal)
	if err != nil {
		terminal.Close()
		return err
	}
	stdin := end
	var pipe *direct
	if commands {
		if stdin, pipe, err = openCommands(); err != nil {
			master.Close()
			return err
		}
		defer stdin.Close() // else no write would fail after the program has closed it
	}
	if err := p.start(what, [3]*os.File{stdin, end, end}, true); err != nil {
		master.Close()
		if pipe != nil {
			pipe.Close()
		}
		return err
	}
	p.master, p.tty, p.keyboard = master, tty.Number(end), programs.NewKeyboard(master, p.out.total)
	go p.in.drain(p.keyboard)
	if commands {
		child := p.child
		p.commands, p.pipe = newInput(), pipe
		go p.out.fill(&reportedOutput{p: p, Reader: &programs.Guard{Terminal: master,
			PID: child.pid, Kill: func() { p.s.children.signal(child, syscall.SIGKILL) }}})
		go p.commands.drain(pipe)
	} else {
		go p.out.fill(master)
	}
	return nil
}

// openCommands opens the pipe of a shell's commands.
func openCommands() (theirs *os.File, ours *direct, err error) {
	theirs, end, err := programs.OpenCommands()
	if err != nil {
		return nil, nil, err
	}
	if ours, err = newDirect(end); err != nil {
		theirs.Close()
		end.Close()
		return nil, nil, err
	}
	return theirs, ours, nil
}

// freeOutputs drops what is kept of the outputs.
func (p *program) freeOutputs() {
	p.out.free()
	if p.err != nil {
		p.err.free()
	}
}

// onPipes starts the program on three pipes, or on sockets in their place. If joined, both outputs
// go to the second. If spool is above 0, the error output is a spool, too.
func (p *program) onPipes(what *prepared, joined bool, spool int64) (err error) {
	p.err = newOutput(0)
	if spool > 0 {
		if p.err, err = newSpool(spool); err != nil {
			return err
		}
	}
	ours, theirs, err := what.openStreams()
	if err != nil {
		return err
	}
	streams := theirs
	if joined {
		streams[2] = streams[1]
	}
	err = p.start(what, streams, false)
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return err
	}
	go p.in.drain(ours[0])
	for i, out := range []*output{p.out, p.err} {
		go func() {
			out.fill(ours[i+1])
			ours[i+1].Close()
		}()
	}
	return nil
}

// request handles a request of a client.
func (p *program) request(a *attachment, r *ssh.Request) {
	if a != nil && !p.mayUse(a.owner) { // the request came too late
		return
	}
	switch r.Type {
	case wire.AckRequest:
		var ack wire.Ack
		if ssh.Unmarshal(r.Payload, &ack) == nil {
			p.out.ack(a, int64(ack.Stdout))
			if p.err != nil {
				p.err.ack(a, int64(ack.Stderr))
			}
		}
	case wire.InputEndRequest:
		var total wire.Total
		if ssh.Unmarshal(r.Payload, &total) == nil && p.master == nil {
			p.in.setEnd(p.sourcesOf(a).in, int64(total.Bytes))
		}
	case wire.CommandsEndRequest:
		var total wire.Total
		if ssh.Unmarshal(r.Payload, &total) == nil && p.commands != nil {
			p.commands.setEnd(p.sourcesOf(a).commands, int64(total.Bytes))
		}
	case "window-change":
		var w wire.Window
		if ssh.Unmarshal(r.Payload, &w) == nil && p.master != nil && w.Rows > 0 && w.Cols > 0 {
			programs.Resize(p.master, int(w.Rows), int(w.Cols))
			p.mu.Lock()
			p.rows, p.cols = int(w.Rows), int(w.Cols)
			p.mu.Unlock()
		}
	case wire.NoteRequest:
		p.mu.Lock()
		p.note = string(r.Payload)
		p.mu.Unlock()
	case wire.YieldRequest:
		var y wire.Yield
		if ssh.Unmarshal(r.Payload, &y) == nil {
			p.yield(a, y)
		}
	case wire.BusyRequest:
		var w wire.Wanted
		if ssh.Unmarshal(r.Payload, &w) == nil {
			p.refuse(w.Number)
		}
	case wire.ReleaseRequest:
		p.release()
	}
}
