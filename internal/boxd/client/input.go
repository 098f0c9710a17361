package client

import (
	"io"
	"net"
	"sync"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// An input is one of a program's inputs. It keeps what is written to it until boxd has taken it,
// and sends it again after a cut.
type input struct {
	r      *remote
	number int // toProgram or toShell

	writing sync.Mutex // held during a write

	// These are guarded by r.mu.
	unacked []byte // what boxd may not have taken
	taken   int64  // how many bytes boxd has taken: those before unacked
	// the offset up to which the input has been sent on the channel that is being opened
	sent   int64
	closed bool
}

// The inputs of a program.
const (
	toProgram = iota // its standard input or its terminal
	toShell          // the pipe of its commands
)

// unackedMax bounds the bytes that boxd has not taken. For both inputs together it is less than an
// SSH channel's window (2 MiB), so that sending does not block.
const unackedMax = 256 << 10

// Write returns when p has been sent. While there is no connection, it returns when p is kept for
// the next one.
func (in *input) Write(p []byte) (n int, err error) {
	r := in.r
	in.writing.Lock()
	defer in.writing.Unlock()
	for n < len(p) {
		r.mu.Lock()
		for len(in.unacked) >= unackedMax && in.endedLocked() == nil {
			r.writable.Wait()
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

// endedLocked returns an error if nothing can be written to the input, else nil.
func (in *input) endedLocked() error {
	if err := in.r.endedLocked(); err != nil {
		return err
	}
	if in.closed {
		return net.ErrClosed
	}
	return nil
}

// endedLocked returns an error if the remote is closed or its connection lost for good, else nil.
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

// Close ends the input. The input of a terminal has no end, so there it does nothing.
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
	r.writable.Broadcast() // wakes a blocked write
	if ch, total := r.channel, in.totalLocked(); ch != nil {
		ch.on.Run(func() { ch.endInput(in.number, total) })
	}
	return nil
}

// totalLocked returns how many bytes have been written in total.
func (in *input) totalLocked() int64 { return in.taken + int64(len(in.unacked)) }

// takenLocked notes that boxd has taken the input up to offset.
func (in *input) takenLocked(offset int64) {
	if n := offset - in.taken; n > 0 && n <= int64(len(in.unacked)) {
		in.unacked = in.unacked[n:]
		if len(in.unacked) == 0 {
			in.unacked = nil
		}
		in.taken = offset
		in.r.writable.Broadcast()
	}
}

// resendLocked sends all input that boxd has not taken. It unlocks r.mu while it sends. If it
// returns nil, nothing is left to be sent.
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

// endInputs sends again where the inputs end that have been closed: Close may not have sent it yet.
func (r *remote) endInputs(ch *channel) {
	r.mu.Lock()
	var ends [2]int64
	var closed [2]bool
	for i := range r.inputs {
		ends[i], closed[i] = r.inputs[i].totalLocked(), r.inputs[i].closed
	}
	r.mu.Unlock()
	for i, end := range ends {
		if closed[i] {
			ch.endInput(i, end)
		}
	}
}

// write sends a piece of the input with that number.
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

// endInput tells boxd where the input with that number ends.
func (ch *channel) endInput(number int, total int64) {
	request := [2]string{wire.InputEndRequest, wire.CommandsEndRequest}[number]
	ch.Channel.SendRequest(request, false, ssh.Marshal(&wire.Total{Bytes: uint64(total)}))
}
