package client

import (
	"context"
	"errors"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
)

var (
	_ hostapi.OOMTeller  = (*Host)(nil)
	_ hostapi.ReadTeller = (*Host)(nil)
)

// OOMKills implements hostapi.OOMTeller. boxd has reported the answer before it has sent the output
// up to shown, unless it is older than reports.
func (h *Host) OOMKills(ctx context.Context, p hostapi.Process, since, shown int64) (int64, error) {
	r, ok := p.(*remote)
	if !ok {
		return 0, errors.New("the program was not started by boxd")
	}
	since = r.commandsOffset(since)
	if report, ok := r.reportOf(ctx, shown); ok {
		if uint64(since) < report.Killed {
			return 1, nil
		}
		return 0, nil
	}
	return ask[int64](ctx, h, wire.OOMRequest, wire.OOM{ID: r.id, Since: since})
}

// AllRead implements hostapi.ReadTeller.
func (h *Host) AllRead(ctx context.Context, p hostapi.Process, shown int64) bool {
	r, ok := p.(*remote)
	if !ok {
		return false
	}
	report, ok := r.reportOf(ctx, shown)
	return ok && report.Read == uint64(r.inputTotal())+1
}

// commandsOffset returns the offset of the commands on boxd's count. A negative one becomes the
// beginning.
func (r *remote) commandsOffset(since int64) int64 {
	if since < 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return since + r.commandsBefore
}

// reportOf returns boxd's report of a moment after the terminal had shown that many bytes, which
// have been read. The report is here or about to be handled. After a cut, it comes with the next
// connection. ok is false if boxd must be asked.
func (r *remote) reportOf(ctx context.Context, shown int64) (report wire.Report, ok bool) {
	if shown <= 0 {
		return report, false
	}
	for {
		r.mu.Lock()
		report, ok = r.report, r.reports
		more := r.reported.Wait()
		r.mu.Unlock()
		if !ok || report.Output >= uint64(shown) {
			return report, ok
		}
		select {
		case <-more:
		case <-r.closed:
			return report, false
		case <-r.lost:
			return report, false
		case <-ctx.Done():
			return report, false
		}
	}
}
