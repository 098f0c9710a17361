package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
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

	inputs     [2]input
	connecting sync.Mutex    // held while a channel is opened
	reading    [2]sync.Mutex // held during a read of each output

	mu             sync.Mutex
	change         *sync.Cond    // broadcast when an input's unacked shrinks, and at the end
	pid            int           // 0 until it is known
	open           wire.Open     // the request that started it
	failed         error         // boxd has no such program
	channel        *channel      // nil while the connection is cut
	resumed        chan struct{} // closed, and made anew, when channel is set
	read           [2]int64      // bytes of each output that have been read
	acked          [2]int64      // how many of them boxd has been told of
	backlog        int64         // bytes of standard output that boxd had at the first State
	oldest         int64         // the offset at which the backlog begins
	skipped        int64         // bytes of standard output that boxd no longer had after a cut
	commandsBefore int64         // bytes of commands that boxd had from earlier clients
	size           wire.Window
	note           []byte
	noteDue        bool // boxd does not have note

	outputEnd     wire.Ack      // the offsets at which both outputs end
	outputEndSet  chan struct{} // closed when outputEnd is set
	outputEndOnce sync.Once

	ended   chan struct{} // closed when status is set
	endOnce sync.Once
	status  shellbox.Status

	closed    chan struct{} // closed by Close or Detach
	closeOnce sync.Once
	runsOn    bool          // after Detach: the program is left running
	lost      chan struct{} // closed when there will be no connection
	lostOnce  sync.Once
}

var _ hostapi.KeptProcess = (*remote)(nil)

// A channel is the way to a program, on one connection.
type channel struct {
	*sshconn.Stream
	on     *sshconn.Conn
	first  chan stateOrError // what boxd has said first of the program
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

func newRemote(l *link, open wire.Open, rows int, commands bool) *remote {
	r := &remote{
		link: l, id: open.ID, open: open, terminal: rows > 0, commands: commands,
		resumed:      make(chan struct{}),
		outputEndSet: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{}),
		lost: make(chan struct{}),
	}
	r.change = sync.NewCond(&r.mu)
	for i := range r.inputs {
		r.inputs[i].r, r.inputs[i].number = r, i
	}
	return r
}

// start starts a program. ctx governs start only.
func (l *link) start(ctx context.Context, what *wire.Start) (*remote, error) {
	r := newRemote(l, wire.Open{ID: rand.Text(), Start: what}, what.Rows, what.Commands)
	return r, r.openFirst(ctx)
}

// attach continues a program that runs, from the oldest output that boxd keeps.
func (l *link) attach(ctx context.Context, p wire.Program) (*remote, error) {
	r := newRemote(l, wire.Open{ID: p.ID, Stdout: -1, Stderr: -1}, p.Rows, p.Commands)
	return r, r.openFirst(ctx)
}

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
	r.change.Broadcast()
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

// Forget has boxd release the program, and keep none of its output.
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

// letGo lets go of the program. Unless it is left running, boxd releases it.
func (r *remote) letGo(left bool) {
	r.closeOnce.Do(func() {
		r.link.mu.Lock()
		delete(r.link.programs, r.id)
		if left {
			r.link.runOn = append(r.link.runOn, r.id)
		}
		r.link.mu.Unlock()
		r.mu.Lock()
		r.runsOn = left
		ch := r.channel
		close(r.closed)
		r.change.Broadcast()
		r.mu.Unlock()
		if ch != nil {
			r.closeChannel(ch)
		}
	})
}

// closeChannel closes a channel after Close or Detach.
func (r *remote) closeChannel(ch *channel) {
	if r.runsOn {
		ch.CloseAfter(func() { r.sendNote(ch) })
	} else {
		ch.release()
	}
}
