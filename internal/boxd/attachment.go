//go:build linux

package main

import (
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// An attachment is a client's channel to a program. Each owner has at most one: a new attachment
// replaces the previous one. Only a program with a spool has attachments of several owners.
type attachment struct {
	owner *owner
	ch    ssh.Channel
	ended chan struct{} // closed when another takes its place, or after the channel's end
	once  sync.Once

	closed atomic.Bool // the channel has ended; what has arrived on it may be still to be passed on
	// yields is set when the owner has given the turn away. attach uses it.
	yields *wire.Yield

	described bool // the client has got the shell's description; sendOutput uses it
}

// attach attaches an owner's channel to the program, and returns when the channel is closed. clean
// says that the previous owner was idle. If the Open was early, its frame is still to come.
func (p *program) attach(o *owner, ch ssh.Channel, requests <-chan *ssh.Request, open *wire.Open,
	clean, early bool) {
	stdout, stderr := open.Stdout, open.Stderr
	a := &attachment{owner: o, ch: ch, ended: make(chan struct{})}
	p.mu.Lock()
	if !p.spooled && (p.owner != o || open.Take && p.released) { // since takeTurn
		failed := syscall.EBUSY
		if p.released {
			failed = syscall.ENOENT
		}
		p.mu.Unlock()
		go ssh.DiscardRequests(requests)
		wire.Send(ch, wire.FailedRequest, wire.Fail(failed).Encode())
		return
	}
	if before := p.attached[o]; before != nil {
		p.detachLocked(before)
	}
	p.attached[o] = a
	if open.Start != nil && p.note == "" {
		p.note = string(open.Start.Note)
	}
	if open.Take {
		delete(p.sources, o)
	}
	p.mu.Unlock()
	p.wakeInputs()

	sources := p.sourceOf(o)
	from := [2]int64{p.out.follow(a, stdout)}
	state := wire.State{PID: uint64(p.child.pid), Input: uint64(p.in.received(sources.in)),
		Stdout: uint64(from[0]), OutTotal: uint64(p.out.total())}
	if p.commands != nil {
		state.Commands = uint64(p.commands.received(sources.commands))
	}
	if p.err != nil {
		from[1] = p.err.follow(a, stderr)
		state.Stderr = uint64(from[1])
	}
	if stdout >= 0 && !open.Take {
		p.out.ack(a, stdout)
		if p.err != nil {
			p.err.ack(a, stderr)
		}
	}
	if stdout < 0 || open.Take {
		p.mu.Lock()
		note := p.note
		p.mu.Unlock()
		wire.Send(ch, wire.NoteRequest, []byte(note))
	}
	if p.commands != nil {
		now := p.reportOf(p.out.total())
		a.sendReport(&now)
		ch.SendRequest(wire.DescribeRequest, false, nil)
	}
	if clean {
		ch.SendRequest(wire.CleanRequest, false, nil)
	}
	ch.SendRequest(wire.StateRequest, false, ssh.Marshal(&state))

	var senders sync.WaitGroup
	var ended [2]int64
	send := func(i int, o *output, w io.Writer, offset int64) {
		senders.Go(func() { ended[i] = a.sendOutput(p, o, w, offset) })
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
	var receivers sync.WaitGroup
	receivers.Go(func() {
		a.receiveInput(p.in, sources.in, &inputOf{ch, early}, func(taken int64) wire.Ack {
			return wire.Ack{Stdout: uint64(taken)}
		})
	})
	if p.commands != nil {
		receivers.Go(func() {
			a.receiveInput(p.commands, sources.commands, countedCommands{ch.Stderr(), p},
				func(taken int64) wire.Ack { return wire.Ack{Stderr: uint64(taken)} })
		})
	}
	var parts wire.Parts
	for r := range requests {
		if parts.Join(r) && a.yields == nil {
			p.request(a, r)
		}
		if r.WantReply {
			r.Reply(false, nil)
		}
	}
	// The client counts on all that it had sent before it closed the channel.
	a.closed.Store(true)
	p.wakeInputs()
	receivers.Wait()
	p.mu.Lock()
	if a.yields != nil && p.attached[o] == a && p.owner == o {
		p.owner, p.clean = nil, a.yields.Idle
	}
	p.detachLocked(a)
	p.mu.Unlock()
	p.forgetIfDone()
}

// detachLocked ends an attachment.
func (p *program) detachLocked(a *attachment) {
	a.once.Do(func() { close(a.ended) })
	if p.attached[a.owner] == a {
		delete(p.attached, a.owner)
	}
	p.out.unfollow(a)
	if p.err != nil {
		p.err.unfollow(a)
	}
	p.turn.Send()
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

// An inputOf reads the data of a channel after the frame of an early Open.
type inputOf struct {
	ch    ssh.Channel
	early bool
}

func (i *inputOf) Read(b []byte) (int, error) {
	if i.early {
		i.early = false
		if _, err := wire.ReadFrame(i.ch); err != nil {
			return 0, err
		}
	}
	return i.ch.Read(b)
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
// offset up to which it has sent the output. A report goes before the output that it is about.
func (a *attachment) sendOutput(p *program, o *output, w io.Writer, offset int64) int64 {
	var reported *wire.Report
	buf := make([]byte, 32<<10)
	for {
		n, err := o.read(buf, offset, a.ended)
		if err != nil || n == 0 {
			return offset
		}
		if report := p.report.Load(); report != reported {
			reported = report
			a.describe(p)
			a.sendReport(report)
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return offset
		}
		offset += int64(n)
	}
}

// receiveInput passes one of the client's inputs, which it reads from r, on to the program, and
// acknowledges it. In an Ack an offset of 0 says nothing.
func (a *attachment) receiveInput(in *input, from *source, r io.Reader,
	ack func(taken int64) wire.Ack) {
	buf := make([]byte, 32<<10)
	var told int64
	for {
		n, err := r.Read(buf)
		if n > 0 {
			taken, ok := in.enqueue(from, buf[:n], a)
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
