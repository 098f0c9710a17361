package localbox

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/sandshell/sandshell/internal/history"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

var _ hostapi.Historian = (*host)(nil)

// OpenHistory implements hostapi.Historian. The states are in the box's own directory.
func (h *host) OpenHistory(_ context.Context, user, dir string, o sandbox.HistoryOptions) (
	sandbox.History, error) {
	if user != "" {
		return nil, errors.ErrUnsupported
	}
	dir, err := expandHome(dir)
	if err != nil {
		return nil, err
	}
	opened, err := history.OpenIn(dir, []string{filepath.Join(h.state.Path, "history")},
		history.Limits{Entries: o.Entries, Bytes: o.Bytes})
	if err != nil {
		return nil, err
	}
	return opened, nil
}
