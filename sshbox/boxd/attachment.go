//go:build linux

package main

import (
	"io"
	"sync"

	"github.com/sandshell/sandshell/sshbox/internal/wire"
	"golang.org/x/crypto/ssh"
)

// An attachment is a channel to a program.
type attachment struct {
	ch   ssh.Channel
	over chan struct{} // closed when another takes its place, or its channel ends
	once sync.Once
}

// serve is one channel's time with the program.
func (p *program) serve(ch ssh.Channel, requests <-chan *ssh.Request, stdout, stderr int64) {
	a := &attachment{ch: ch, over: make(chan struct{})}
	p.mu.Lock()
	if before := p.attached; before != nil {
		p.detach(before)
	}
	p.attached = a
	p.mu.Unlock()
	p.in.wake()

	from := [2]int64{p.out.start(stdout)}
	state := wire.State{PID: uint64(p.child.pid), Input: uint64(p.in.total()), Stdout: uint64(from[0]), OutTotal: uint64(p.out.total())}
	if p.err != nil {
		from[1] = p.err.start(stderr)
		state.Stderr = uint64(from[1])
	}
	if stdout >= 0 {
		p.out.ack(stdout)
		if p.err != nil {
			p.err.ack(stderr)
		}
	}
	ch.SendRequest(wire.StateRequest, false, ssh.Marshal(&state))

	var senders sync.WaitGroup
	var ended [2]int64
	send := func(i int, o *output, w io.Writer, offset int64) {
		senders.Go(func() { ended[i] = a.send(o, w, offset) })
	}
	send(0, p.out, ch, from[0])
	if p.err != nil {
		send(1, p.err, ch.Stderr(), from[1])
	}
	go func() {
		senders.Wait()
		if !a.isOver() {
			ch.SendRequest(wire.OutputEndRequest, false, ssh.Marshal(&wire.Ack{Stdout: uint64(ended[0]), Stderr: uint64(ended[1])}))
			ch.CloseWrite()
		}
	}()
	go func() {
		select {
		case <-p.child.ended:
			exit := wire.Exit{Code: uint32(p.child.status.ExitStatus())}
			if status := p.child.status; status.Signaled() {
				exit = wire.Exit{Code: 128 + uint32(status.Signal()), Signal: uint32(status.Signal())}
			}
			ch.SendRequest(wire.ExitRequest, false, ssh.Marshal(&exit))
		case <-a.over:
		}
	}()
	go p.take(a)
	for r := range requests {
		p.request(r)
		if r.WantReply {
			r.Reply(false, nil)
		}
	}
	p.mu.Lock()
	p.detach(a)
	p.mu.Unlock()
}

// detach ends an attachment; p.mu is held.
func (p *program) detach(a *attachment) {
	a.once.Do(func() { close(a.over) })
	if p.attached == a {
		p.attached = nil
	}
	go func() { // what blocks in it returns
		p.out.wake()
		if p.err != nil {
			p.err.wake()
		}
		p.in.wake()
		a.ch.Close() // last: it waits as long as the connection takes nothing
	}()
}

func (a *attachment) isOver() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

// send sends output from offset on, and returns the offset of its end.
func (a *attachment) send(o *output, w io.Writer, offset int64) int64 {
	buf := make([]byte, 32<<10)
	for {
		n, err := o.read(buf, offset, a.over)
		if err != nil || n == 0 {
			return offset
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return offset
		}
		offset += int64(n)
	}
}

// take takes the client's input.
func (p *program) take(a *attachment) {
	buf := make([]byte, 32<<10)
	var told int64
	for {
		n, err := a.ch.Read(buf)
		if n > 0 {
			taken, ok := p.in.take(buf[:n], func() bool { return !a.isOver() })
			if !ok {
				return
			}
			if taken-told >= 16<<10 || told == 0 {
				told = taken
				a.ch.SendRequest(wire.AckRequest, false, ssh.Marshal(&wire.Ack{Stdout: uint64(taken)}))
			}
		}
		if err != nil {
			return
		}
	}
}
