package sshbox

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"net"
	"sync"

	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sshbox/internal/wire"
	"golang.org/x/crypto/ssh"
)

// A remote is a program that boxd runs. Apart from the time it takes, it does not notice when the connection is cut and made again: what the
// program printed is asked for from the last byte read on, and what was typed is sent again from the last byte on that boxd has taken.
type remote struct {
	link     *link
	id       string
	terminal bool

	connecting sync.Mutex    // held while a channel is opened
	writing    sync.Mutex    // held during a write
	reading    [2]sync.Mutex // held during a read of each output

	mu       sync.Mutex
	change   *sync.Cond    // broadcast when unacked shrinks, and at the end
	pid      int           // 0 until it is known
	open     wire.Open     // how it was asked for
	failed   error         // boxd has no such program
	channel  *channel      // nil while the connection is cut
	resumed  chan struct{} // closed, and made anew, when channel is set
	unacked  []byte        // typed, and maybe not taken by boxd
	taken    int64         // so many bytes before that have been
	sent     int64         // so many bytes have been sent on the channel that is being opened
	inputEnd bool
	got      [2]int64 // so much of each output has been read
	acked    [2]int64 // and boxd knows
	backlog  int64    // so much of it was there to be read at first
	size     wire.Window
	note     []byte

	ends    wire.Ack // where both outputs end
	endsSet chan struct{}
	endsOne sync.Once

	ended   chan struct{} // closed when status is set
	endOnce sync.Once
	status  shellbox.Status

	closed    chan struct{} // by Close or Detach
	closeOnce sync.Once
	left      bool          // by then: the program is left running
	gone      chan struct{} // there will be no connection any more
	goneOnce  sync.Once
}

var _ shellbox.KeptProcess = (*remote)(nil)

// A channel is the way to a program, on one connection.
type channel struct {
	*stream
	on     *connection
	state  chan wire.State // boxd's first word,
	failed chan error      // or that there is no such program
}

// unackedMax bounds what is typed ahead. It is less than an SSH channel's window (2 MiB), so that sending it does not block.
const unackedMax = 256 << 10

// ackEvery is how much output is acknowledged at once.
const ackEvery = 64 << 10

func newRemote(l *link, open wire.Open, rows, cols int) *remote {
	r := &remote{
		link: l, id: open.ID, open: open, terminal: rows > 0, resumed: make(chan struct{}),
		endsSet: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{}), gone: make(chan struct{}),
	}
	r.change = sync.NewCond(&r.mu)
	return r
}

// start starts a program. ctx governs the start.
func (l *link) start(ctx context.Context, what *wire.Start) (*remote, error) {
	r := newRemote(l, wire.Open{ID: rand.Text(), Start: what}, what.Rows, what.Cols)
	return r, r.begin(ctx)
}

// attach goes on with a program that runs, from the oldest output on that there is.
func (l *link) attach(ctx context.Context, p wire.Program) (*remote, error) {
	r := newRemote(l, wire.Open{ID: p.ID, Stdout: -1, Stderr: -1}, p.Rows, p.Cols)
	return r, r.begin(ctx)
}

// begin opens the first channel. The link has the program from here on: when the connection is cut meanwhile, resume asks for it again, and boxd
// knows by its id whether it has been started.
func (r *remote) begin(ctx context.Context) error {
	r.link.mu.Lock()
	r.link.programs[r.id] = r
	r.link.mu.Unlock()
	for {
		conn, err := r.link.connection(ctx)
		if err == nil {
			err = r.connect(ctx, conn)
		}
		r.mu.Lock()
		failed := r.failed
		r.mu.Unlock()
		switch {
		case err == nil && failed == nil:
			return nil
		case failed != nil:
			err = failed
		case errors.Is(err, errCut):
			continue
		}
		r.Close()
		return err
	}
}

// errCut: the connection was cut, and the link will make a new one.
var errCut = errors.New("the connection was cut")

// connect opens a channel to the program on conn, unless there is one. It returns errCut when conn is no more.
func (r *remote) connect(ctx context.Context, conn *connection) error {
	r.connecting.Lock()
	defer r.connecting.Unlock()
	r.mu.Lock()
	before := r.channel
	if before != nil && before.on == conn || r.failed != nil {
		r.mu.Unlock()
		return nil
	}
	r.channel = nil
	r.mu.Unlock()
	if before != nil {
		before.close()
	}
	r.reading[0].Lock() // a read under way counts
	r.reading[1].Lock()
	r.mu.Lock()
	open := r.open
	if r.pid != 0 {
		open = wire.Open{ID: r.id, Stdout: r.got[0], Stderr: r.got[1]}
	}
	r.mu.Unlock()
	r.reading[0].Unlock()
	r.reading[1].Unlock()

	opened, failed := make(chan *channel, 1), make(chan error, 1)
	if !conn.run(func() {
		if ch, err := r.openChannel(conn, &open); err != nil {
			failed <- err
		} else {
			opened <- ch
		}
	}) {
		return errCut
	}
	giveUp := func() {
		conn.run(func() {
			select {
			case ch := <-opened:
				ch.release()
			case <-failed:
			}
		})
	}
	var ch *channel
	select {
	case ch = <-opened:
	case err := <-failed:
		return cutOr(ctx, conn, err)
	case <-conn.gone:
		return errCut
	case <-ctx.Done():
		giveUp()
		return context.Cause(ctx)
	}
	select {
	case state := <-ch.state:
		return r.use(ctx, ch, state)
	case err := <-ch.failed:
		ch.close()
		r.mu.Lock()
		r.failed = err
		started := r.pid != 0
		r.mu.Unlock()
		if started {
			r.lose()
		}
		return nil
	case <-conn.gone:
		return errCut
	case <-ctx.Done():
		ch.release()
		return context.Cause(ctx)
	}
}

// cutOr returns errCut if that is what err comes from.
func cutOr(ctx context.Context, conn *connection, err error) error {
	var refused *ssh.OpenChannelError
	if answered := errors.As(err, &refused); !answered && conn.ends(ctx) {
		return errCut
	}
	return err
}

func (r *remote) openChannel(conn *connection, open *wire.Open) (*channel, error) {
	ssh, requests, err := conn.client.OpenChannel(wire.ProgramChannel, nil)
	if err != nil {
		return nil, err
	}
	ch := &channel{stream: newStream(ssh, conn.group), on: conn, state: make(chan wire.State, 1), failed: make(chan error, 1)}
	ch.credit = math.MaxInt // unackedMax sees to it
	if !conn.run(func() {
		for request := range requests {
			r.request(ch, request)
		}
	}) {
		return nil, errGone
	}
	if err := wire.WriteOpen(ch, open); err != nil {
		ch.close()
		return nil, err
	}
	return ch, nil
}

// release has boxd let go of the program, and closes the channel.
func (ch *channel) release() {
	ch.closeAfter(func() { ch.ch.SendRequest(wire.ReleaseRequest, false, nil) })
}

// request takes what boxd tells on a channel. All of it stays true when the channel is no longer the current one.
func (r *remote) request(ch *channel, request *ssh.Request) {
	switch request.Type {
	case wire.StateRequest:
		var state wire.State
		if ssh.Unmarshal(request.Payload, &state) == nil {
			ch.state <- state
		}
	case wire.FailedRequest:
		ch.failed <- wire.Decode(request.Payload)
	case wire.AckRequest:
		var ack wire.Ack
		if ssh.Unmarshal(request.Payload, &ack) == nil {
			r.mu.Lock()
			r.tookUntil(int64(ack.Stdout))
			r.mu.Unlock()
		}
	case wire.OutputEndRequest:
		r.endsOne.Do(func() {
			if ssh.Unmarshal(request.Payload, &r.ends) == nil {
				close(r.endsSet)
			}
		})
	case wire.ExitRequest:
		r.endOnce.Do(func() {
			var exit wire.Exit
			if ssh.Unmarshal(request.Payload, &exit) == nil {
				r.status = shellbox.Status{Code: int(exit.Code), Signal: int(exit.Signal)}
				close(r.ended)
			}
		})
	}
}

// tookUntil notes that boxd has taken the input up to offset; r.mu is held.
func (r *remote) tookUntil(offset int64) {
	if n := offset - r.taken; n > 0 && n <= int64(len(r.unacked)) {
		r.unacked = r.unacked[n:]
		if len(r.unacked) == 0 {
			r.unacked = nil
		}
		r.taken = offset
		r.change.Broadcast()
	}
}

// use makes ch the channel, once what boxd has not taken of the input is sent again.
func (r *remote) use(ctx context.Context, ch *channel, state wire.State) error {
	r.mu.Lock()
	if r.pid == 0 {
		r.pid = int(state.PID)
		r.got = [2]int64{int64(state.Stdout), int64(state.Stderr)}
		r.acked, r.taken = r.got, int64(state.Input)
		r.backlog = int64(state.OutTotal - state.Stdout)
	}
	r.tookUntil(int64(state.Input))
	r.sent = r.taken
	for r.sent < r.taken+int64(len(r.unacked)) {
		rest := r.unacked[r.sent-r.taken:]
		r.mu.Unlock()
		if _, err := ch.Write(rest); err != nil {
			return cutOr(ctx, ch.on, err)
		}
		r.mu.Lock()
		r.sent = max(r.sent+int64(len(rest)), r.taken)
	}
	if r.inputEnd {
		ch.endInput(r.sent)
	}
	if r.size.Rows > 0 {
		ch.ch.SendRequest("window-change", false, ssh.Marshal(&r.size))
	}
	if r.note != nil {
		ch.ch.SendRequest(wire.NoteRequest, false, r.note)
	}
	select {
	case <-r.closed:
		r.mu.Unlock()
		r.end(ch)
		return nil
	default:
	}
	r.channel = ch
	close(r.resumed)
	r.resumed = make(chan struct{})
	r.mu.Unlock()
	return nil
}

func (ch *channel) endInput(total int64) {
	ch.ch.SendRequest(wire.InputEndRequest, false, ssh.Marshal(&wire.Total{Bytes: uint64(total)}))
}

// typed returns how many bytes of input have been written.
func (r *remote) typed() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken + int64(len(r.unacked))
}

// lose says that there will be no connection any more.
func (r *remote) lose() {
	r.goneOnce.Do(func() { close(r.gone) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.change.Broadcast()
}

func (r *remote) PID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pid
}

func (r *remote) Stdin() io.WriteCloser { return remoteInput{r} }
func (r *remote) Stdout() io.Reader     { return remoteOutput{r, 0} }

func (r *remote) Stderr() io.Reader {
	if r.terminal {
		return nil
	}
	return remoteOutput{r, 1}
}

// A remoteOutput is one of a program's outputs.
type remoteOutput struct {
	r *remote
	i int
}

func (o remoteOutput) Read(p []byte) (int, error) {
	r := o.r
	endsSet := r.endsSet
	for {
		r.mu.Lock()
		ch, resumed := r.channel, r.resumed
		r.mu.Unlock()
		if ch != nil {
			if n, err := r.read(ch, o.i, p); n > 0 || err == nil {
				return n, nil
			}
		}
		select {
		case <-resumed:
			continue
		default:
		}
		select {
		case <-resumed:
		case <-endsSet:
			r.mu.Lock()
			at := r.got[o.i]
			r.mu.Unlock()
			if end := [2]uint64{r.ends.Stdout, r.ends.Stderr}[o.i]; at >= int64(end) {
				return 0, io.EOF
			}
			endsSet = nil // the rest comes on the next channel
		case <-r.closed:
			return 0, net.ErrClosed
		case <-r.gone:
			return 0, io.ErrUnexpectedEOF
		}
	}
}

// read reads from ch, if it is still the channel.
func (r *remote) read(ch *channel, i int, p []byte) (int, error) {
	r.reading[i].Lock()
	defer r.reading[i].Unlock()
	r.mu.Lock()
	current := r.channel == ch
	r.mu.Unlock()
	if !current {
		return 0, errCut
	}
	n, err := [2]*pump{ch.out, ch.err}[i].Read(p)
	r.mu.Lock()
	r.got[i] += int64(n)
	tell := r.got[i]-r.acked[i] >= ackEvery
	if tell {
		r.acked = r.got
	}
	ack := wire.Ack{Stdout: uint64(r.acked[0]), Stderr: uint64(r.acked[1])}
	r.mu.Unlock()
	if tell {
		ch.ch.SendRequest(wire.AckRequest, false, ssh.Marshal(&ack))
	}
	return n, err
}

// A remoteInput is a program's input.
type remoteInput struct{ r *remote }

// Write returns when p has been sent, or is kept to be sent when the connection is there again.
func (w remoteInput) Write(p []byte) (n int, err error) {
	r := w.r
	r.writing.Lock()
	defer r.writing.Unlock()
	for n < len(p) {
		r.mu.Lock()
		for len(r.unacked) >= unackedMax && r.over() == nil {
			r.change.Wait()
		}
		if err := r.over(); err != nil {
			r.mu.Unlock()
			return n, err
		}
		chunk := p[n:min(len(p), n+unackedMax-len(r.unacked))]
		r.unacked = append(r.unacked, chunk...)
		ch := r.channel
		r.mu.Unlock()
		if ch != nil {
			ch.Write(chunk) // should it fail, it will be sent again
		}
		n += len(chunk)
	}
	return n, nil
}

// over returns why nothing can be written any more; r.mu is held.
func (r *remote) over() error {
	select {
	case <-r.closed:
		return net.ErrClosed
	case <-r.gone:
		return io.ErrClosedPipe
	default:
	}
	if r.inputEnd {
		return net.ErrClosed
	}
	return nil
}

func (w remoteInput) Close() error {
	r := w.r
	if r.terminal {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inputEnd {
		return nil
	}
	r.inputEnd = true
	if ch, total := r.channel, r.taken+int64(len(r.unacked)); ch != nil {
		ch.on.run(func() { ch.endInput(total) })
	}
	return nil
}

func (r *remote) Resize(rows, cols int) error {
	if !r.terminal {
		return errors.New("resize: the program has no terminal")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.over(); err != nil {
		return err
	}
	r.size = wire.Window{Rows: uint32(rows), Cols: uint32(cols)}
	if ch := r.channel; ch != nil {
		payload := ssh.Marshal(&r.size)
		r.mu.Unlock()
		ch.ch.SendRequest("window-change", false, payload)
		r.mu.Lock()
	}
	return nil
}

// SetNote has boxd keep a text with the program.
func (r *remote) SetNote(note string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note = []byte(note)
	if ch := r.channel; ch != nil {
		ch.on.run(func() { ch.ch.SendRequest(wire.NoteRequest, false, []byte(note)) })
	}
	return nil
}

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
	case <-r.gone:
		return shellbox.Status{}, errNoStatus
	}
}

// Close lets go of the program. If the connection is cut just now, boxd learns of it when there is one again.
func (r *remote) Close() error {
	r.letGo(false)
	return nil
}

// Detach implements shellbox.KeptProcess.
func (r *remote) Detach() { r.letGo(true) }

// letGo ends the hold on the program, and has boxd release it unless it is left running.
func (r *remote) letGo(left bool) {
	r.closeOnce.Do(func() {
		r.link.mu.Lock()
		delete(r.link.programs, r.id)
		left = left || r.link.detached
		r.link.mu.Unlock()
		r.mu.Lock()
		r.left = left
		ch := r.channel
		close(r.closed)
		r.change.Broadcast()
		r.mu.Unlock()
		if ch != nil {
			r.end(ch)
		}
	})
}

// end ends a channel of a program that has been let go of.
func (r *remote) end(ch *channel) {
	if r.left {
		ch.close()
	} else {
		ch.release()
	}
}
