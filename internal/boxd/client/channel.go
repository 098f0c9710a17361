package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// openFirst opens the first channel. It adds the program to the link first. So if the connection is
// cut meanwhile, resume asks for the program again, and boxd knows by the id whether it has started
// it.
func (r *remote) openFirst(ctx context.Context) error {
	r.link.mu.Lock()
	r.link.programs[r.id] = r
	r.link.mu.Unlock()
	for {
		conn, err := r.link.connection(ctx)
		if err == nil {
			err = r.openOn(ctx, conn)
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
		if r.open.Take { // this Host must not end another owner's program
			r.Detach()
		} else {
			r.Close()
		}
		return err
	}
}

// errCut says that the connection was cut, and that the link will make a new one.
var errCut = errors.New("the connection was cut")

// openOn opens a channel to the program on conn, unless there is one. It returns errCut if conn has
// ended.
func (r *remote) openOn(ctx context.Context, conn *sshconn.Conn) error {
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
		before.Close()
	}
	r.reading[0].Lock() // a read under way still counts its bytes in r.read
	r.reading[1].Lock()
	r.mu.Lock()
	open := r.open
	if r.pid != 0 {
		open = wire.Open{ID: r.id, Stdout: r.read[0], Stderr: r.read[1]}
	}
	r.mu.Unlock()
	r.reading[0].Unlock()
	r.reading[1].Unlock()

	opened, failed := make(chan *channel, 1), make(chan error, 1)
	if !conn.Run(func() {
		if ch, err := r.openChannel(conn, &open); err != nil {
			failed <- err
		} else {
			opened <- ch
		}
	}) {
		return errCut
	}
	giveUp := func() {
		conn.Run(func() {
			select {
			case ch := <-opened:
				r.giveUp(ch)
			case <-failed:
			}
		})
	}
	var ch *channel
	select {
	case ch = <-opened:
	case err := <-failed:
		return cutOr(ctx, conn, err)
	case <-conn.Gone():
		return errCut
	case <-ctx.Done():
		giveUp()
		return ctxerr.Of(ctx)
	}
	select {
	case first := <-ch.first:
		if first.err == nil {
			return r.useChannel(ctx, ch, first.state)
		}
		ch.Close()
		r.mu.Lock()
		r.failed = first.err
		started := r.pid != 0
		r.mu.Unlock()
		if started {
			r.markLost()
		}
		return nil
	case <-conn.Gone():
		return errCut
	case <-ctx.Done():
		r.giveUp(ch)
		return ctxerr.Of(ctx)
	}
}

// cutOr returns errCut if err was caused by the end of conn, else err.
func cutOr(ctx context.Context, conn *sshconn.Conn, err error) error {
	var refused *ssh.OpenChannelError
	if answered := errors.As(err, &refused); !answered && conn.CheckEnded(ctx) {
		return errCut
	}
	return err
}

func (r *remote) openChannel(conn *sshconn.Conn, open *wire.Open) (*channel, error) {
	early := wire.EarlyOpen(open)
	ssh, requests, err := conn.Client.OpenChannel(wire.ProgramChannel, early)
	if err != nil {
		return nil, err
	}
	ch := &channel{Stream: sshconn.NewStream(ssh, conn.Group), on: conn,
		first: make(chan stateOrError, 1), ended: make(chan struct{})}
	ch.Credit = math.MaxInt // unackedMax keeps the input in flight below the window
	if !conn.Run(func() {
		defer close(ch.ended)
		var parts wire.Parts
		for request := range requests {
			if parts.Join(request) {
				r.request(ch, request)
			}
		}
	}) {
		return nil, sshconn.ErrGone
	}
	err = wire.WriteOpen(ch, open)
	if early != nil && errors.Is(err, io.ErrClosedPipe) {
		err = nil // boxd has answered the early Open, and has said why it closed the channel
	}
	if err != nil {
		ch.Close()
		return nil, err
	}
	return ch, nil
}

// giveUp closes a channel on which nothing waits any longer. It asks boxd to release the program,
// or to free it if the program was another owner's.
func (r *remote) giveUp(ch *channel) {
	ch.CloseAfter(func() {
		if r.open.Take {
			ch.Channel.SendRequest(wire.YieldRequest, false, ssh.Marshal(&wire.Yield{}))
		} else {
			ch.Channel.SendRequest(wire.ReleaseRequest, false, nil)
		}
	})
}

// answered stores what boxd says of the program. Only the first answer counts.
func (ch *channel) answered(answer stateOrError) {
	select {
	case ch.first <- answer:
	default:
	}
}

// request handles a request from boxd. It handles requests on previous channels too, because what
// they say is still true. request must not block: that would block the whole connection.
func (r *remote) request(ch *channel, request *ssh.Request) {
	switch request.Type {
	case wire.StateRequest:
		var state wire.State
		if ssh.Unmarshal(request.Payload, &state) == nil {
			ch.answered(stateOrError{state: state})
		}
	case wire.ReportRequest:
		var report wire.Report
		if ssh.Unmarshal(request.Payload, &report) == nil {
			r.mu.Lock()
			r.reports = true
			if report.Output >= r.report.Output {
				r.report = report
			}
			r.reported.Send()
			r.mu.Unlock()
		}
	case wire.DescribeRequest:
		r.handleDescription(request.Payload)
	case wire.NoteRequest:
		r.mu.Lock()
		r.note = request.Payload
		r.mu.Unlock()
	case wire.CleanRequest:
		r.mu.Lock()
		r.clean = true
		r.mu.Unlock()
	case wire.WantedRequest:
		var wanted wire.Wanted
		if ssh.Unmarshal(request.Payload, &wanted) == nil {
			ch.on.Run(func() { r.wanted(ch, wanted) })
		}
	case wire.GoneRequest:
		r.mu.Lock()
		r.failed = errDropped
		r.mu.Unlock()
		r.markLost()
	case wire.FailedRequest:
		ch.answered(stateOrError{err: failure(request.Payload)})
	case wire.AckRequest:
		var ack wire.Ack
		if ssh.Unmarshal(request.Payload, &ack) == nil {
			r.mu.Lock()
			r.inputsTakenLocked(int64(ack.Stdout), int64(ack.Stderr))
			r.mu.Unlock()
		}
	case wire.OutputEndRequest:
		r.outputEndOnce.Do(func() {
			if ssh.Unmarshal(request.Payload, &r.outputEnd) == nil {
				close(r.outputEndSet)
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

// failureMax bounds the memory for an error from boxd. The longest error lists some hundred files.
const failureMax = 1 << 20

// failure returns the error that boxd has sent.
func failure(text []byte) error {
	if err := bounded.Unmarshal(text, new(json.RawMessage), "an error of boxd",
		failureMax); errors.As(err, new(*bounded.TooLargeError)) {
		return err
	}
	return wire.Decode(text)
}

// inputsTakenLocked notes that boxd has taken the inputs up to these offsets.
func (r *remote) inputsTakenLocked(program, shell int64) {
	r.inputs[toProgram].takenLocked(program)
	r.inputs[toShell].takenLocked(shell)
}

// useChannel sends again the input that boxd has not taken, and then makes ch the current channel.
func (r *remote) useChannel(ctx context.Context, ch *channel, state wire.State) error {
	r.mu.Lock()
	if r.pid == 0 {
		r.pid = int(state.PID)
		r.read = [2]int64{int64(state.Stdout), int64(state.Stderr)}
		r.oldest = int64(state.Stdout)
		r.acked = r.read
		if r.open.Start == nil { // else Start.First is all that boxd can have
			r.inputs[toProgram].taken, r.inputs[toShell].taken = int64(state.Input),
				int64(state.Commands)
			r.commandsBefore = int64(state.Commands)
		}
		r.backlog = int64(state.OutTotal - state.Stdout)
		r.skipped[1] = int64(state.Stderr) // for the standard output, Kept.Skipped says so
	}
	for i, begins := range [2]uint64{state.Stdout, state.Stderr} {
		if gone := int64(begins) - r.read[i]; gone > 0 {
			r.skipped[i] += gone
			r.read[i] = int64(begins)
		}
	}
	r.inputsTakenLocked(int64(state.Input), int64(state.Commands))
	if err := r.resendLocked(ch); err != nil {
		r.mu.Unlock()
		return cutOr(ctx, ch.on, err)
	}
	if r.size.Rows > 0 {
		ch.Channel.SendRequest("window-change", false, ssh.Marshal(&r.size))
	}
	r.noteDue = r.note != nil // the previous channel may not have carried it
	select {
	case <-r.closed:
		r.mu.Unlock()
		r.closeChannel(ch)
		return nil
	default:
	}
	r.channel = ch
	if r.noteDue {
		ch.on.Run(func() { r.sendNote(ch) })
	}
	r.resumed.Send()
	r.mu.Unlock()
	return nil
}
