//go:build linux

package main

import (
	"io"
	"sync"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// An attachment is a client's channel to a program. A program has one at most: a new one takes the
// place of the one before.
type attachment struct {
	ch    ssh.Channel
	ended chan struct{} // closed when another takes its place or its channel ends
	once  sync.Once
}

// attach attaches a channel to the program, and returns when the channel is closed. stdout and
// stderr are the offsets at which the client wants the outputs to begin; -1 is the oldest byte that
// is kept.
func (p *program) attach(ch ssh.Channel, requests <-chan *ssh.Request, stdout, stderr int64) {
	a := &attachment{ch: ch, ended: make(chan struct{})}
	p.mu.Lock()
	if before := p.attached; before != nil {
		p.detachLocked(before)
	}
	p.attached = a
	p.mu.Unlock()
	p.wakeInputs()

	from := [2]int64{p.out.follow(stdout)}
	state := wire.State{PID: uint64(p.child.pid), Input: uint64(p.in.total()),
		Stdout: uint64(from[0]), OutTotal: uint64(p.out.total())}
	if p.commands != nil {
		state.Commands = uint64(p.commands.total())
	}
	if p.err != nil {
		from[1] = p.err.follow(stderr)
		state.Stderr = uint64(from[1])
	}
	if stdout >= 0 {
		p.out.ack(stdout)
		if p.err != nil {
			p.err.ack(stderr)
		}
	}
	if stdout < 0 {
		p.mu.Lock()
		note := p.note
		p.mu.Unlock()
		wire.Send(ch, wire.NoteRequest, []byte(note))
	}
	ch.SendRequest(wire.StateRequest, false, ssh.Marshal(&state))

	var senders sync.WaitGroup
	var ended [2]int64
	send := func(i int, o *output, w io.Writer, offset int64) {
		senders.Go(func() { ended[i] = a.sendOutput(o, w, offset) })
	}
	send(0, p.out, ch, from[0])
	if p.err != nil {
		send(1, p.err, ch.Stderr(), from[1])
	}
	go func() {
		senders.Wait()
		if !a.hasEnded() {
			ch.SendRequest(wire.OutputEndRequest, false,
				ssh.Marshal(&wire.Ack{Stdout: uint64(ended[0]), Stderr: uint64(ended[1])}))
			ch.CloseWrite()
		}
	}()
	go func() {
		select {
		case <-p.child.ended:
			exit := wire.Exit{Code: uint32(p.child.status.ExitStatus())}
			if status := p.child.status; status.Signaled() {
				exit = wire.Exit{Code: 128 + uint32(status.Signal()),
					Signal: uint32(status.Signal())}
			}
			ch.SendRequest(wire.ExitRequest, false, ssh.Marshal(&exit))
		case <-a.ended:
		}
	}()
	go a.receiveInput(p.in, ch, func(taken int64) wire.Ack {
		return wire.Ack{Stdout: uint64(taken)}
	})
	if p.commands != nil {
		go a.receiveInput(p.commands, countedCommands{ch.Stderr(), p}, func(taken int64) wire.Ack {
			return wire.Ack{Stderr: uint64(taken)}
		})
	}
	var parts wire.Parts
	for r := range requests {
		if parts.Join(r) {
			p.request(r)
		}
		if r.WantReply {
			r.Reply(false, nil)
		}
	}
	p.mu.Lock()
	p.detachLocked(a)
	p.mu.Unlock()
}

// detachLocked ends an attachment.
func (p *program) detachLocked(a *attachment) {
	a.once.Do(func() { close(a.ended) })
	if p.attached == a {
		p.attached = nil
		p.out.unfollow()
	}
	go func() { // frees the goroutines of this attachment
		p.out.wake()
		if p.err != nil {
			p.err.wake()
		}
		p.wakeInputs()
		a.ch.Close() // last: it blocks while the connection takes nothing
	}()
}

// wakeInputs wakes goroutines that pass on the input of a former client, so that they end.
func (p *program) wakeInputs() {
	p.in.wake()
	if p.commands != nil {
		p.commands.wake()
	}
}

func (a *attachment) hasEnded() bool {
	select {
	case <-a.ended:
		return true
	default:
		return false
	}
}

// sendOutput sends an output from offset on, until its end or the attachment's. It returns the
// offset up to which it has sent the output.
func (a *attachment) sendOutput(o *output, w io.Writer, offset int64) int64 {
	buf := make([]byte, 32<<10)
	for {
		n, err := o.read(buf, offset, a.ended)
		if err != nil || n == 0 {
			return offset
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return offset
		}
		offset += int64(n)
	}
}

// receiveInput passes one of the client's inputs, which it reads from r, on to the program, and
// acknowledges it. In an Ack an offset of 0 says nothing.
func (a *attachment) receiveInput(in *input, r io.Reader, ack func(taken int64) wire.Ack) {
	buf := make([]byte, 32<<10)
	var told int64
	for {
		n, err := r.Read(buf)
		if n > 0 {
			taken, ok := in.enqueue(buf[:n], func() bool { return !a.hasEnded() })
			if !ok {
				return
			}
			if taken-told >= 16<<10 || told == 0 {
				told = taken
				message := ack(taken)
				a.ch.SendRequest(wire.AckRequest, false, ssh.Marshal(&message))
			}
		}
		if err != nil {
			return
		}
	}
}
