package client

import (
	"context"
	"encoding/json"
	"errors"
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
		r.Close()
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
	r.reading[0].Lock() // wait for a read under way, which r.got counts it
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
		ch.release()
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
	ssh, requests, err := conn.Client.OpenChannel(wire.ProgramChannel, nil)
	if err != nil {
		return nil, err
	}
	ch := &channel{Stream: sshconn.NewStream(ssh, conn.Group), on: conn,
		first: make(chan stateOrError, 1)}
	ch.Credit = math.MaxInt // unackedMax keeps what is sent below the window
	if !conn.Run(func() {
		var parts wire.Parts
		for request := range requests {
			if parts.Join(request) {
				r.request(ch, request)
			}
		}
	}) {
		return nil, sshconn.ErrGone
	}
	if err := wire.WriteOpen(ch, open); err != nil {
		ch.Close()
		return nil, err
	}
	return ch, nil
}

// release asks boxd to release the program, and closes the channel.
func (ch *channel) release() {
	ch.CloseAfter(func() { ch.Channel.SendRequest(wire.ReleaseRequest, false, nil) })
}

// answered notes what boxd says of the program. Only the first answer counts.
func (ch *channel) answered(answer stateOrError) {
	select {
	case ch.first <- answer:
	default:
	}
}

// request handles a request of boxd's. What the request says is true even if the channel is no
// longer the current one. request must not block: that would block the whole connection.
func (r *remote) request(ch *channel, request *ssh.Request) {
	switch request.Type {
	case wire.StateRequest:
		var state wire.State
		if ssh.Unmarshal(request.Payload, &state) == nil {
			ch.answered(stateOrError{state: state})
		}
	case wire.NoteRequest:
		r.mu.Lock()
		r.note = request.Payload
		r.mu.Unlock()
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

// failureMax bounds the memory for an error of boxd's. The longest error lists some hundred files.
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
		r.inputs[toProgram].taken, r.inputs[toShell].taken = int64(state.Input),
			int64(state.Commands)
		r.commandsBefore = int64(state.Commands)
		r.backlog = int64(state.OutTotal - state.Stdout)
	}
	if gone := int64(state.Stdout) - r.read[0]; gone > 0 {
		r.skipped += gone
		r.read[0] = int64(state.Stdout)
	}
	r.inputsTakenLocked(int64(state.Input), int64(state.Commands))
	if err := r.resendLocked(ch); err != nil {
		r.mu.Unlock()
		return cutOr(ctx, ch.on, err)
	}
	if r.size.Rows > 0 {
		ch.Channel.SendRequest("window-change", false, ssh.Marshal(&r.size))
	}
	select {
	case <-r.closed:
		r.mu.Unlock()
		r.closeChannel(ch)
		return nil
	default:
	}
	r.channel = ch
	if r.noteDue = r.note != nil; r.noteDue { // the previous channel may not have carried it
		ch.on.Run(func() { r.sendNote(ch) })
	}
	close(r.resumed)
	r.resumed = make(chan struct{})
	r.mu.Unlock()
	return nil
}
