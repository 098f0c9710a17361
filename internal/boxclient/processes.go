package boxclient

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/wire"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// boxd answers questions about processes, each by a request of its own.
var _ shellbox.Processes = (*Host)(nil)

// Tree implements shellbox.Processes.
func (h *Host) Tree(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return ask[[]proc.Process](ctx, h, wire.TreeRequest, pids)
}

// Alive implements shellbox.Processes.
func (h *Host) Alive(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return ask[[]proc.Process](ctx, h, wire.AliveRequest, pids)
}

// Marked implements shellbox.Processes.
func (h *Host) Marked(ctx context.Context, word string) ([]int, error) {
	return ask[[]int](ctx, h, wire.MarkedRequest, word)
}

// Modes implements shellbox.Processes.
func (h *Host) Modes(ctx context.Context, tty int) (proc.Modes, error) {
	return ask[proc.Modes](ctx, h, wire.ModesRequest, tty)
}

// ResetModes implements shellbox.Processes.
func (h *Host) ResetModes(ctx context.Context, tty int) error {
	_, err := ask[any](ctx, h, wire.ResetModesRequest, tty)
	return err
}

// Uptime implements shellbox.Processes.
func (h *Host) Uptime(ctx context.Context) (time.Duration, error) {
	return ask[time.Duration](ctx, h, wire.UptimeRequest, nil)
}

// Signal implements shellbox.Processes.
func (h *Host) Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error) {
	return ask[int](ctx, h, wire.SignalRequest, wire.Signal{PIDs: pids, Signals: signals})
}

// Settle implements shellbox.Processes. boxd says how much the program has printed, and Settle waits until that much has been read here.
func (h *Host) Settle(ctx context.Context, p shellbox.Process) error {
	r, ok := p.(*remote)
	if !ok || !r.terminal {
		return fmt.Errorf("settle: the program is none on a terminal of boxd's")
	}
	printed, err := ask[int64](ctx, h, wire.SettleRequest, wire.Settle{ID: r.id, Input: r.typed()})
	if err != nil {
		return err
	}
	r.awaitRead(ctx, printed)
	return ctx.Err()
}

// ask returns boxd's answer to a question. If the connection is cut meanwhile, it asks again on the next one.
func ask[A any](ctx context.Context, h *Host, request string, question any) (answer A, err error) {
	payload, err := json.Marshal(question)
	if err != nil {
		return answer, err
	}
	for {
		conn, err := h.link.connection(ctx)
		if err != nil {
			return answer, h.explain(err)
		}
		reply, err := conn.Request(ctx, request, payload)
		if err == nil {
			err = json.Unmarshal(reply, &answer)
			return answer, err
		}
		if ctx.Err() != nil || cutOr(ctx, conn, err) != errCut {
			return answer, err
		}
	}
}

// readLimit bounds the wait until output is read. The output is here or about to come, but a caller may not read it.
const readLimit = 2 * time.Second

// awaitRead waits until that many bytes of the program's standard output have been read.
func (r *remote) awaitRead(ctx context.Context, printed int64) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		r.mu.Lock()
		read := r.got[0]
		r.mu.Unlock()
		if read >= printed {
			return
		}
		select {
		case <-r.closed:
			return
		case <-r.gone:
			return
		case <-r.link.Stopped():
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
