//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/internal/tty"
	"golang.org/x/crypto/ssh"
)

// A program is one that the owner has started. If the owner's connection is cut, it goes on and
// waits for the next one.
type program struct {
	s      *server
	id     string
	child  *child
	master *direct // of its terminal, nil if it has none
	in     *input
	out    *output
	err    *output // nil with a terminal

	tty      int                // the terminal's number
	keyboard *programs.Keyboard // nil without a terminal
	commands *input             // nil unless the standard input is a pipe for a shell's commands
	pipe     *direct            // of the commands

	killCounts killCounts

	mu         sync.Mutex
	discarded  discarded
	note       string
	rows, cols int
	attached   *attachment
	released   bool
	forgotten  bool // its log is not kept either
}

// serveProgram serves a ProgramChannel.
func (c *conn) serveProgram(newChannel ssh.NewChannel) {
	ch, requests, err := newChannel.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	open, err := wire.ReadOpen(ch)
	var p *program
	if err == nil {
		p, err = c.s.program(open)
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
	p.attach(ch, requests, open.Stdout, open.Stderr)
}

// unfinished reports whether what was read ended before it was whole.
func unfinished(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// program returns the program with that id. If there is none and the client says how, it starts it.
func (s *server) program(open *wire.Open) (*program, error) {
	if open.Start != nil {
		s.noteMark(texts(open.Start.Env)) // before starting is locked: it may take long
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
	p, err := s.startProgram(open.ID, open.Start)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.programs[open.ID] = p
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
	p := &program{s: s, id: id, in: newInput(), rows: start.Rows, cols: start.Cols}
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
		err = p.onPipes(prepared, start.Joined)
	}
	if err != nil {
		p.out.free()
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
		go p.out.fill(&programs.Guard{Terminal: master, PID: child.pid, Kill: func() {
			p.s.children.signal(child, syscall.SIGKILL)
		}})
		p.commands, p.pipe = newInput(), pipe
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

// onPipes starts the program on three pipes, or on sockets in their place. If joined, both outputs
// go to the second.
func (p *program) onPipes(what *prepared, joined bool) error {
	p.err = newOutput(0)
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

func (p *program) request(r *ssh.Request) {
	switch r.Type {
	case wire.AckRequest:
		var ack wire.Ack
		if ssh.Unmarshal(r.Payload, &ack) == nil {
			p.out.ack(int64(ack.Stdout))
			if p.err != nil {
				p.err.ack(int64(ack.Stderr))
			}
		}
	case wire.InputEndRequest:
		var total wire.Total
		if ssh.Unmarshal(r.Payload, &total) == nil && p.master == nil {
			p.in.setEnd(int64(total.Bytes))
		}
	case wire.CommandsEndRequest:
		var total wire.Total
		if ssh.Unmarshal(r.Payload, &total) == nil && p.commands != nil {
			p.commands.setEnd(int64(total.Bytes))
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
	case wire.ReleaseRequest:
		p.release()
	}
}

// release is called when the owner no longer wants the program: the terminal hangs up, the pipes
// are closed, and boxd forgets the program when it ends.
func (p *program) release() {
	p.mu.Lock()
	p.released = true
	p.mu.Unlock()
	p.in.stop()
	p.out.close()
	if p.commands != nil {
		p.commands.stop()
		p.pipe.Close() // a blocked write returns
	}
	if p.master != nil {
		p.master.Close()
	}
	if p.err != nil {
		p.err.close()
	}
	p.forgetIfDone()
}

// forgetIfDone drops the program if it has ended and nobody wants it.
func (p *program) forgetIfDone() {
	p.mu.Lock()
	kept := !p.released || p.keepsLogLocked()
	p.mu.Unlock()
	select {
	case <-p.child.ended:
	default:
		return
	}
	if kept {
		return
	}
	p.s.mu.Lock()
	_, there := p.s.programs[p.id]
	delete(p.s.programs, p.id)
	p.s.mu.Unlock()
	if there {
		p.out.free()
	}
}

// keepsLogLocked reports whether the program's output is kept after its release. It is if it is a
// job's log in a box that outlives its owner: the next owner may read it. p.mu is locked.
func (p *program) keepsLogLocked() bool { return p.out.spool != nil && p.s.keep && !p.forgotten }

// forgetProgram releases a program, and keeps none of its output. The owner asks for it when a
// job's command has ended. The job's shell may then still be about to end.
func (s *server) forgetProgram(id string) {
	s.mu.Lock()
	p := s.programs[id]
	s.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	p.forgotten = true
	p.mu.Unlock()
	p.release()
}

// releaseOthers releases all programs but those with these ids.
func (s *server) releaseOthers(ids []string) {
	s.mu.Lock()
	var others []*program
	for id, p := range s.programs {
		if !slices.Contains(ids, id) {
			others = append(others, p)
		}
	}
	s.mu.Unlock()
	for _, p := range others {
		p.release()
	}
}

// list returns the programs that a new owner can continue.
func (s *server) list() []wire.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []wire.Program{}
	for _, p := range s.programs {
		p.mu.Lock()
		if !p.released || p.keepsLogLocked() {
			list = append(list, wire.Program{ID: p.id, PID: p.child.pid, Rows: p.rows, Cols: p.cols,
				Commands: p.commands != nil})
		}
		p.mu.Unlock()
	}
	return list
}
