package client

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
	"golang.org/x/crypto/ssh"
)

var (
	_ hostapi.Sharer        = (*Host)(nil)
	_ hostapi.SharedProcess = (*remote)(nil)
)

// Shared implements hostapi.Sharer.
func (h *Host) Shared() bool { return h.shared.Load() }

// KeepsLogs implements hostapi.Sharer.
func (h *Host) KeepsLogs() bool { return h.Keep }

// Asked implements hostapi.Sharer.
func (h *Host) Asked(l hostapi.Listed) hostapi.Process {
	return newRemote(h.link, wire.Open{ID: l.ID}, l.Rows, l.Cols, l.Commands)
}

// Listed implements hostapi.Sharer.
func (h *Host) Listed(ctx context.Context) ([]hostapi.Listed, error) {
	programs, err := ask[[]wire.Program](ctx, h, wire.ListRequest, true)
	if err != nil {
		return nil, err
	}
	list := bounded.List{What: "what boxd keeps", Max: keptMax, Cost: 1 << 10}
	var listed []hostapi.Listed
	for _, p := range programs {
		if err := list.Add(len(p.Note)); err != nil {
			return nil, err
		}
		listed = append(listed, hostapi.Listed{ID: p.ID, Note: string(p.Note), Rows: p.Rows,
			Cols: p.Cols, Commands: p.Commands})
	}
	return listed, nil
}

// Take implements hostapi.Sharer.
func (h *Host) Take(ctx context.Context, l hostapi.Listed, offset int64) (hostapi.Taken, error) {
	h.link.mu.Lock()
	before := h.link.programs[l.ID]
	h.link.mu.Unlock()
	if before != nil { // this Host has just yielded the turn
		if err := before.HandOver(ctx); err != nil {
			return hostapi.Taken{}, err
		}
	}
	r := newRemote(h.link, wire.Open{ID: l.ID, Stdout: offset, Stderr: -1, Take: true}, l.Rows,
		l.Cols, l.Commands)
	r.yields = func() bool { return false }
	if err := r.openFirst(ctx); err != nil {
		return hostapi.Taken{}, h.explain(turnError(err))
	}
	h.link.mu.Lock()
	delete(h.link.runOn, l.ID)
	h.link.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return hostapi.Taken{Clean: r.clean, Kept: hostapi.Kept{Process: r, Note: string(r.note),
		Rows: l.Rows, Cols: l.Cols, Backlog: r.backlog, Skipped: r.oldest}}, nil
}

// turnError returns hostapi.ErrTurn for boxd's EBUSY.
func turnError(err error) error {
	if errors.Is(err, syscall.EBUSY) {
		return hostapi.ErrTurn
	}
	return err
}

// Drop implements hostapi.Sharer.
func (h *Host) Drop(ctx context.Context, l hostapi.Listed) error {
	_, err := h.request(ctx, wire.ForgetRequest, []byte(l.ID))
	return err
}

// leaveLimit bounds leave.
const leaveLimit = 2 * time.Second

// leave tells boxd that this Host will not come back. Without it, boxd finds out in time.
func (h *Host) leave() {
	h.link.mu.Lock()
	conn := h.link.current
	h.link.mu.Unlock()
	if conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
		defer cancel()
		conn.Request(ctx, wire.LeaveRequest, nil)
	}
}

// Listed implements hostapi.SharedProcess.
func (r *remote) Listed() hostapi.Listed { return r.began }

// OnWanted implements hostapi.SharedProcess.
func (r *remote) OnWanted(yields func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.yields = yields
}

// wanted answers a WantedRequest.
func (r *remote) wanted(ch *channel, w wire.Wanted) {
	r.mu.Lock()
	yields := r.yields
	r.mu.Unlock()
	if yields == nil || !yields() {
		ch.Channel.SendRequest(wire.BusyRequest, false, ssh.Marshal(&w))
	}
}

// Offset implements hostapi.SharedProcess.
func (r *remote) Offset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read[0]
}

// Yield implements hostapi.SharedProcess.
func (r *remote) Yield(idle bool) {
	r.end(true, func(ch *channel) {
		r.sendNote(ch)
		ch.Channel.SendRequest(wire.YieldRequest, false, ssh.Marshal(&wire.Yield{Idle: idle}))
	})
}

// Gone implements hostapi.SharedProcess.
func (r *remote) Gone() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failed == errDropped:
		return fs.ErrNotExist
	case errors.Is(r.failed, syscall.EBUSY),
		// While the connection was cut, another Host has taken the turn and ended the program.
		errors.Is(r.failed, fs.ErrNotExist) && r.link.host.Shared():
		return hostapi.ErrTurn
	}
	return nil
}

// errDropped says that another owner has ended the program.
var errDropped = errors.New("another program has closed it")
