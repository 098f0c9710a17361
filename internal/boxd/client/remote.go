package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A remote is a program that boxd runs. A cut of the connection delays it and has no other effect.
// On the next connection the remote asks for the output after the last byte that it has read, and
// sends again the input after the last byte that boxd has taken.
type remote struct {
	link     *link
	id       string
	terminal bool
	commands bool // there is a pipe of commands
	began    hostapi.Listed

	inputs     [2]input
	connecting sync.Mutex    // held while a channel is opened
	reading    [2]sync.Mutex // held during a read of each output

	mu             sync.Mutex
	writable       *sync.Cond       // broadcast when an input's unacked shrinks, and at the end
	pid            int              // 0 until it is known
	open           wire.Open        // the request that started it
	failed         error            // boxd has no such program
	channel        *channel         // nil while the connection is cut
	resumed        broadcast.Signal // sent when channel is set
	read           [2]int64         // bytes of each output that have been read
	dealt          int64            // of read[0], those whose reader has come back for more
	acked          [2]int64         // how many of them boxd has been told of
	backlog        int64            // bytes of standard output that boxd had at the first State
	oldest         int64            // the offset at which the backlog begins
	skipped        [2]int64         // bytes of each output that boxd no longer had
	commandsBefore int64            // bytes of commands that boxd had from earlier clients
	size           wire.Window
	reports        bool             // boxd sends reports
	report         wire.Report      // the latest
	reported       broadcast.Signal // sent when report is set
	describes      bool             // boxd describes the shell by itself
	shell          *proc.Shell      // what it has said; nil: nothing yet
	described      broadcast.Signal // sent when shell is set
	note           []byte
	noteDue        bool // boxd does not have note
	clean          bool // the previous owner was idle
	yields         func() bool

	outputEnd     wire.Ack      // the offsets at which both outputs end
	outputEndSet  chan struct{} // closed when outputEnd is set
	outputEndOnce sync.Once

	ended   chan struct{} // closed when status is set
	endOnce sync.Once
	status  shellbox.Status

	closed    chan struct{} // closed by Close, Detach or Yield
	closeOnce sync.Once
	last      func(*channel) // sends the last requests on a channel; set before closed is closed
	// handed is closed after closed, when boxd has got everything for the program.
	handed     chan struct{}
	handedOnce sync.Once
	lost       chan struct{} // closed when there will be no connection
	lostOnce   sync.Once
}

var _ hostapi.KeptProcess = (*remote)(nil)

// A channel is the way to a program, on one connection.
type channel struct {
	*sshconn.Stream
	on     *sshconn.Conn
	first  chan stateOrError // what boxd has said first of the program
	ended  chan struct{}     // closed when boxd has closed the channel, or the connection has ended
	noting sync.Mutex        // held while a note is sent, which may go in parts
}

// A stateOrError is what boxd says of a program that a channel was opened for: its state, or why
// there is no such program.
type stateOrError struct {
	state wire.State
	err   error
}

// ackEvery is how many bytes of output one acknowledgement covers.
const ackEvery = 64 << 10

func newRemote(l *link, open wire.Open, rows, cols int, commands bool) *remote {
	r := &remote{
		link: l, id: open.ID, open: open, terminal: rows > 0, commands: commands,
		began:        hostapi.Listed{ID: open.ID, Rows: rows, Cols: cols, Commands: commands},
		outputEndSet: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{}),
		handed: make(chan struct{}), lost: make(chan struct{}),
	}
	r.writable = sync.NewCond(&r.mu)
	for i := range r.inputs {
		r.inputs[i].r, r.inputs[i].number = r, i
	}
	return r
}

// start starts a program. ctx governs start only.
func (l *link) start(ctx context.Context, what *wire.Start) (*remote, error) {
	r := newRemote(l, wire.Open{ID: rand.Text(), Start: what}, what.Rows, what.Cols, what.Commands)
	r.inputs[toShell].unacked = slices.Clone(what.First) // an earlier boxd does not take it
	return r, r.openFirst(ctx)
}

// attach continues a program that runs, from the oldest output that boxd keeps.
func (l *link) attach(ctx context.Context, p wire.Program) (*remote, error) {
	r := newRemote(l, wire.Open{ID: p.ID, Stdout: -1, Stderr: -1}, p.Rows, p.Cols, p.Commands)
	return r, r.openFirst(ctx)
}

// TookFirst implements hostapi.FirstTaker.
func (r *remote) TookFirst() bool { return r.open.Start != nil && len(r.open.Start.First) > 0 }

// inputTotal returns how many bytes have been written to the standard input or terminal.
func (r *remote) inputTotal() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inputs[toProgram].totalLocked()
}

// markLost ends the remote, because there will be no connection.
func (r *remote) markLost() {
	r.lostOnce.Do(func() { close(r.lost) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writable.Broadcast()
}

func (r *remote) PID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pid
}

func (r *remote) Stdin() io.WriteCloser { return &r.inputs[toProgram] }
func (r *remote) Stdout() io.Reader     { return remoteOutput{r, 0} }

func (r *remote) Commands() io.WriteCloser {
	if !r.commands {
		return nil
	}
	return &r.inputs[toShell]
}

func (r *remote) Stderr() io.Reader {
	if r.terminal {
		return nil
	}
	return remoteOutput{r, 1}
}

// Resize implements shellbox.Process. It returns when boxd has applied the size: what is written to
// Commands goes another way, and would overtake it.
func (r *remote) Resize(rows, cols int) error {
	if !r.terminal {
		return errors.New("resize: the program has no terminal")
	}
	r.mu.Lock()
	if err := r.endedLocked(); err != nil {
		r.mu.Unlock()
		return err
	}
	r.size = wire.Window{Rows: uint32(rows), Cols: uint32(cols)}
	ch := r.channel
	r.mu.Unlock()
	if ch != nil {
		ch.Resize(rows, cols) // if it fails, the next channel begins with the size
	}
	return nil
}

// SetNote implements hostapi.KeptProcess: boxd keeps the text with the program.
func (r *remote) SetNote(note string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(note) > wire.LongMax {
		return fmt.Errorf("a note of %d bytes: %w", len(note), syscall.E2BIG)
	}
	select {
	case <-r.closed: // the note of the end is the last one
		return nil
	default:
	}
	r.note, r.noteDue = []byte(note), true
	if ch := r.channel; ch != nil {
		ch.on.Run(func() { r.sendNote(ch) })
	}
	return nil
}

// storedNote returns the note that boxd has sent or SetNote has set.
func (r *remote) storedNote() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.note)
}

// Forget tells boxd to release the program and to keep none of its output.
func (r *remote) Forget(ctx context.Context) error {
	if !r.link.host.Keep {
		return nil
	}
	_, err := r.link.host.request(ctx, wire.ForgetRequest, []byte(r.id))
	return err
}

// sendNote sends the note on ch, unless boxd has it.
func (r *remote) sendNote(ch *channel) {
	ch.noting.Lock()
	defer ch.noting.Unlock()
	r.mu.Lock()
	note, due := r.note, r.noteDue
	r.noteDue = false
	r.mu.Unlock()
	if due {
		wire.Send(ch.Channel, wire.NoteRequest, note)
	}
}

var errNoStatus = errors.New("boxd sent no exit status")

func (r *remote) Wait() (shellbox.Status, error) {
	select {
	case <-r.ended:
		return r.status, nil
	default:
	}
	select {
	case <-r.ended:
		return r.status, nil
	case <-r.closed:
		return shellbox.Status{}, net.ErrClosed
	case <-r.lost:
		return shellbox.Status{}, errNoStatus
	}
}

// Close implements shellbox.Process: boxd releases the program. While there is no connection, boxd
// learns of it on the next one.
func (r *remote) Close() error {
	r.letGo(r.link.host.Abandoned())
	return nil
}

// Detach implements hostapi.KeptProcess.
func (r *remote) Detach() { r.letGo(true) }

// HandOver implements hostapi.KeptProcess.
func (r *remote) HandOver(ctx context.Context) error {
	r.Detach()
	select {
	case <-r.handed:
		return nil
	case <-r.lost:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}

// letGo lets go of the program. Unless it is left running, boxd releases it.
func (r *remote) letGo(left bool) {
	r.end(left, func(ch *channel) {
		if left {
			r.sendNote(ch)
			r.endInputs(ch)
		} else {
			ch.Channel.SendRequest(wire.ReleaseRequest, false, nil)
		}
	})
}

// end lets go of the program, and closes the channel after last. If the program is left running,
// the link keeps the remote until boxd has answered the end of a channel: then boxd has all that
// was sent before. If the connection is cut until then, the next one begins with what is missing.
func (r *remote) end(left bool, last func(*channel)) {
	r.closeOnce.Do(func() {
		r.mu.Lock()
		r.last = last
		ch := r.channel
		stays := left && r.pid != 0 && r.failed == nil
		close(r.closed)
		r.writable.Broadcast()
		r.mu.Unlock()
		if left {
			r.link.mu.Lock()
			r.link.runOn[r.id] = struct{}{}
			r.link.mu.Unlock()
		}
		if !stays {
			r.handOver()
		}
		if ch != nil {
			r.closeChannel(ch)
		}
	})
}

// closeChannel closes a channel after end.
func (r *remote) closeChannel(ch *channel) {
	ch.CloseAfter(func() { r.last(ch) })
	ch.on.Run(func() {
		if <-ch.ended; !ch.on.Broken() {
			r.handOver()
		}
	})
}

// handOver ends what the link has to do with the program.
func (r *remote) handOver() {
	r.handedOnce.Do(func() { close(r.handed) })
	r.link.mu.Lock()
	defer r.link.mu.Unlock()
	if r.link.programs[r.id] == r {
		delete(r.link.programs, r.id)
	}
}
