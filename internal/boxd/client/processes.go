package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/sshconn"
	"golang.org/x/crypto/ssh"
)

// boxd answers questions about processes, each by a request.
var (
	_ hostapi.Processes   = (*Host)(nil)
	_ hostapi.ShellTeller = (*Host)(nil)
)

// Tree implements hostapi.Processes.
func (h *Host) Tree(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return ask[[]proc.Process](ctx, h, wire.TreeRequest, pids)
}

// Alive implements hostapi.Processes.
func (h *Host) Alive(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return ask[[]proc.Process](ctx, h, wire.AliveRequest, pids)
}

// Marked implements hostapi.Processes.
func (h *Host) Marked(ctx context.Context, word string) ([]int, error) {
	return ask[[]int](ctx, h, wire.MarkedRequest, word)
}

// ResetModes implements hostapi.Processes.
func (h *Host) ResetModes(ctx context.Context, tty int) error {
	_, err := ask[any](ctx, h, wire.ResetModesRequest, tty)
	return err
}

// Started returns when boxd started, on the box's clock.
func (h *Host) Started(ctx context.Context) (time.Time, error) {
	return ask[time.Time](ctx, h, wire.StartedRequest, nil)
}

// Uptime implements hostapi.Processes.
func (h *Host) Uptime(ctx context.Context) (time.Duration, error) {
	return ask[time.Duration](ctx, h, wire.UptimeRequest, nil)
}

// Signal implements hostapi.Processes.
func (h *Host) Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error) {
	return ask[int](ctx, h, wire.SignalRequest, wire.Signal{PIDs: pids, Signals: signals})
}

// Interrupt implements hostapi.Processes.
func (h *Host) Interrupt(ctx context.Context, p hostapi.Process) (bool, error) {
	r, err := onTerminal(p)
	if err != nil {
		return false, fmt.Errorf("interrupt: %w", err)
	}
	return ask[bool](ctx, h, wire.InterruptRequest, r.id)
}

// Settle implements hostapi.Processes. boxd says how much the program has printed, and Settle
// waits until that much has been read here.
func (h *Host) Settle(ctx context.Context, p hostapi.Process) (busy bool, err error) {
	r, err := onTerminal(p)
	if err != nil {
		return false, fmt.Errorf("settle: %w", err)
	}
	settled, err := ask[wire.Settled](ctx, h, wire.SettleRequest,
		wire.Settle{ID: r.id, Input: r.inputTotal()})
	if err != nil {
		return false, err
	}
	read := r.awaitRead(ctx, settled.Output)
	return settled.Busy || !read, ctxerr.Of(ctx)
}

// Look implements hostapi.Processes.
func (h *Host) Look(ctx context.Context, p hostapi.Process) (proc.Look, error) {
	r, err := onTerminal(p)
	if err != nil {
		return proc.Look{}, fmt.Errorf("look: %w", err)
	}
	return ask[proc.Look](ctx, h, wire.LookRequest, r.id)
}

// Shell implements hostapi.ShellTeller.
func (h *Host) Shell(ctx context.Context, p hostapi.Process) (proc.Shell, error) {
	r, err := onTerminal(p)
	if err != nil {
		return proc.Shell{}, fmt.Errorf("describe a shell: %w", err)
	}
	if shell := r.description(ctx); shell != nil {
		return *shell, nil
	}
	return ask[proc.Shell](ctx, h, wire.ShellRequest, r.id)
}

// Discard implements hostapi.Processes.
func (h *Host) Discard(ctx context.Context, p hostapi.Process) (int, error) {
	r, err := onTerminal(p)
	if err != nil {
		return 0, fmt.Errorf("discard: %w", err)
	}
	return ask[int](ctx, h, wire.DiscardRequest, wire.Discard{ID: r.id, Input: r.inputTotal(),
		Key: rand.Text()})
}

// Program implements hostapi.Processes.
func (h *Host) Program(ctx context.Context, pid int) (dir string, env []string, err error) {
	e, err := ask[wire.Environment](ctx, h, wire.ProgramRequest, pid)
	for _, kv := range e.Env {
		env = append(env, string(kv))
	}
	return string(e.Dir), env, err
}

// onTerminal returns p as a remote. It fails if p is not a program of boxd on a terminal.
func onTerminal(p hostapi.Process) (*remote, error) {
	if r, ok := p.(*remote); ok && r.terminal {
		return r, nil
	}
	return nil, errNoTerminal
}

var errNoTerminal = errors.New("the program is not on a terminal of boxd's")

// ask asks boxd a question and returns the answer.
func ask[A any](ctx context.Context, h *Host, request string, question any) (answer A, err error) {
	payload, err := json.Marshal(question)
	if err != nil {
		return answer, err
	}
	reply, err := h.request(ctx, request, payload)
	if err == nil {
		err = bounded.Unmarshal(reply, &answer, "boxd's answer to "+request, answerMax)
	}
	return answer, err
}

// answerMax bounds the memory for the values of an answer. It suffices for some 30,000 processes.
const answerMax = 16 << 20

// request makes a request of boxd. If the connection is cut before the answer, it makes the request
// again on the next one.
//
// SSH answers the requests of a connection one after the other, and a look at many processes takes
// long on a busy machine. So a request that is made while another is under way, such as one for
// another session, gets a channel of its own.
func (h *Host) request(ctx context.Context, name string, payload []byte) (reply []byte, err error) {
	alone := h.asking.Add(1) == 1
	defer h.asking.Add(-1)
	for {
		conn, err := h.link.connection(ctx)
		if err != nil {
			return nil, h.explain(err)
		}
		reply, err := requestOn(ctx, conn, name, payload, alone)
		if err == nil || ctx.Err() != nil || cutOr(ctx, conn, err) != errCut {
			return reply, err
		}
	}
}

// requestOn sends a request to boxd on conn. If other requests are under way, or if the payload or
// the reply is too long for a message, it uses a channel.
func requestOn(ctx context.Context, conn *sshconn.Conn, name string, payload []byte,
	alone bool) (reply []byte, err error) {
	if alone && len(payload) <= wire.MessageMax {
		reply, err := conn.Request(ctx, name, payload)
		var refused *sshconn.RefusedError
		if !errors.As(err, &refused) || string(refused.Reply) != wire.LongReply {
			return reply, err
		}
	}
	ch, requests, err := conn.OpenChannel(ctx, wire.AskChannel, []byte(name))
	if err != nil {
		return nil, err
	}
	conn.Run(func() { ssh.DiscardRequests(requests) })
	stream := sshconn.NewStream(ch, conn.Group)
	defer stream.Close()
	defer context.AfterFunc(ctx, stream.Close)() // reads and writes return
	text, err := []byte(nil), wire.WriteFrame(stream, payload)
	if err == nil {
		text, err = wire.ReadFrame(stream.Out)
	}
	if ctx.Err() != nil {
		return nil, ctxerr.Of(ctx)
	}
	if err != nil {
		return nil, err
	}
	ok, reply, err := wire.DecodeAnswer(text)
	if err == nil && !ok {
		err = &sshconn.RefusedError{Request: name, Reply: reply}
	}
	return reply, err
}

// readLimit bounds the wait until output is read. The output is here or about to arrive, but it may
// have no reader.
const readLimit = 2 * time.Second

// awaitRead waits until that many bytes of the program's standard output have been read, and their
// reader has called Read again: it has dealt with them. It reports whether it has.
func (r *remote) awaitRead(ctx context.Context, printed int64) bool {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		r.mu.Lock()
		dealt := r.dealt
		r.mu.Unlock()
		if dealt >= printed {
			return true
		}
		select {
		case <-r.closed:
			return false
		case <-r.lost:
			return false
		case <-r.link.Stopped():
			return false
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}
