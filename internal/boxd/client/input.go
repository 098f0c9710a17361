package client

import (
	"io"
	"net"
	"sync"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// An input is one of a program's inputs. What is written to it is kept until boxd has taken it, and
// sent again after a cut.
type input struct {
	r      *remote
	number int // toProgram or toShell

	writing sync.Mutex // held during a write

	// These are guarded by r.mu.
	unacked []byte // what boxd has perhaps not taken
	taken   int64  // bytes before unacked: boxd has taken them
	// the offset up to which the input has been sent on the channel that is being opened
	sent   int64
	closed bool
}

// The inputs of a program.
const (
	toProgram = iota // its standard input or its terminal
	toShell          // the pipe of its commands
)

// unackedMax bounds what is written ahead. For both inputs together it is less than an SSH
// channel's window (2 MiB), so that sending it does not block.
const unackedMax = 256 << 10

// Write returns when p has been sent or, while there is no connection, is kept to be sent on the
// next one.
func (in *input) Write(p []byte) (n int, err error) {
	r := in.r
	in.writing.Lock()
	defer in.writing.Unlock()
	for n < len(p) {
		r.mu.Lock()
		for len(in.unacked) >= unackedMax && in.endedLocked() == nil {
			r.change.Wait()
		}
		if err := in.endedLocked(); err != nil {
			r.mu.Unlock()
			return n, err
		}
		chunk := p[n:min(len(p), n+unackedMax-len(in.unacked))]
		in.unacked = append(in.unacked, chunk...)
		ch := r.channel
		r.mu.Unlock()
		if ch != nil {
			ch.write(in.number, chunk) // if it fails, the chunk is sent again on the next channel
		}
		n += len(chunk)
	}
	return n, nil
}

// endedLocked returns why nothing can be written any more; r.mu is held.
func (in *input) endedLocked() error {
	if err := in.r.endedLocked(); err != nil {
		return err
	}
	if in.closed {
		return net.ErrClosed
	}
	return nil
}

// endedLocked returns why nothing can be done any more; r.mu is held.
func (r *remote) endedLocked() error {
	select {
	case <-r.closed:
		return net.ErrClosed
	case <-r.lost:
		return io.ErrClosedPipe
	default:
		return nil
	}
}

// Close ends the input, unless it is a terminal's.
func (in *input) Close() error {
	r := in.r
	if in.number == toProgram && r.terminal {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.closed {
		return nil
	}
	in.closed = true
	r.change.Broadcast() // a write that waits
	if ch, total := r.channel, in.totalLocked(); ch != nil {
		ch.on.Run(func() { ch.endInput(in.number, total) })
	}
	return nil
}

// totalLocked returns how many bytes have been written; r.mu is held.
func (in *input) totalLocked() int64 { return in.taken + int64(len(in.unacked)) }

// takenLocked notes that boxd has taken the input up to offset; r.mu is held.
func (in *input) takenLocked(offset int64) {
	if n := offset - in.taken; n > 0 && n <= int64(len(in.unacked)) {
		in.unacked = in.unacked[n:]
		if len(in.unacked) == 0 {
			in.unacked = nil
		}
		in.taken = offset
		in.r.change.Broadcast()
	}
}

// resendLocked sends all input that boxd has not taken; r.mu is held, but not while something is sent.
// Nothing is left when it returns without an error.
func (r *remote) resendLocked(ch *channel) error {
	for i := range r.inputs {
		r.inputs[i].sent = r.inputs[i].taken
	}
	behind := func() (in *input) {
		for i := range r.inputs {
			if r.inputs[i].sent < r.inputs[i].totalLocked() {
				return &r.inputs[i]
			}
		}
		return nil
	}
	for in := behind(); in != nil; in = behind() {
		rest := in.unacked[in.sent-in.taken:]
		r.mu.Unlock()
		_, err := ch.write(in.number, rest)
		r.mu.Lock()
		if err != nil {
			return err
		}
		in.sent = max(in.sent+int64(len(rest)), in.taken)
	}
	for i := range r.inputs {
		if in := &r.inputs[i]; in.closed {
			ch.endInput(i, in.sent)
		}
	}
	return nil
}

// write sends a piece of the input of that number.
func (ch *channel) write(number int, p []byte) (int, error) {
	if number == toProgram {
		return ch.Write(p)
	}
	select {
	case <-ch.Closed():
		return 0, net.ErrClosed
	default:
		return ch.Channel.Stderr().Write(p)
	}
}

// endInput tells boxd where the input of that number ends.
func (ch *channel) endInput(number int, total int64) {
	request := [2]string{wire.InputEndRequest, wire.CommandsEndRequest}[number]
	ch.Channel.SendRequest(request, false, ssh.Marshal(&wire.Total{Bytes: uint64(total)}))
}
