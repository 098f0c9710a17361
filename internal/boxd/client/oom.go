package client

import (
	"context"
	"errors"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
)

var _ hostapi.OOMTeller = (*Host)(nil)

// OOMKills implements hostapi.OOMTeller.
func (h *Host) OOMKills(ctx context.Context, p hostapi.Process, since int64) (int64, error) {
	r, ok := p.(*remote)
	if !ok {
		return 0, errors.New("the program was not started by boxd")
	}
	if since < 0 {
		since = 0
	} else {
		r.mu.Lock()
		since += r.commandsBefore
		r.mu.Unlock()
	}
	return ask[int64](ctx, h, wire.OOMRequest, wire.OOM{ID: r.id, Since: since})
}
