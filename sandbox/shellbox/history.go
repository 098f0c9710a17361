package shellbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// History returns the history of a directory: its states can be saved and brought back. A relative
// dir starts at the main session's directory. [sandbox.History] says what is kept, and where. The
// history is the same for all who open it in this box, and ends with the box.
//
// If there is no such directory, the error is fs.ErrNotExist. Over a plain sshd, and on systems
// other than Linux, it is errors.ErrUnsupported.
func (b *Box) History(ctx context.Context, dir string, opts ...sandbox.HistoryOption) (
	sandbox.History, error) {
	h, err := b.openHistory(ctx, dir, sandbox.NewHistoryOptions(opts...))
	if err != nil {
		return nil, fmt.Errorf("history of %q: %w", dir, err)
	}
	return &history{box: b, h: h}, nil
}

func (b *Box) openHistory(ctx context.Context, dir string, o sandbox.HistoryOptions) (
	sandbox.History, error) {
	if o.Entries < 0 || o.Bytes < 0 {
		return nil, errors.New("HistoryLimits: a limit is negative: give 0 for the default")
	}
	dir, err := b.filePath(dir)
	if err != nil {
		return nil, err
	}
	host, ok := b.host.(hostapi.Historian)
	if !ok {
		return nil, fmt.Errorf("%w: %s cannot run the program that keeps it (boxd)",
			errors.ErrUnsupported, b)
	}
	var h sandbox.History
	err = b.inHistory(ctx, func(ctx context.Context) (err error) {
		h, err = host.OpenHistory(ctx, b.user, dir, o)
		return err
	})
	return h, err
}

// inHistory makes a call of a history a call of the box.
func (b *Box) inHistory(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err = f(ctx); err == nil || ctx.Err() != nil || errors.As(err, new(*sandbox.LeftError)) {
		return err
	}
	return b.lostOr(err)
}

// history implements sandbox.History. After Close of the box its calls return ErrClosed.
type history struct {
	box *Box
	h   sandbox.History
}

func (h *history) Save(ctx context.Context) (p sandbox.Point, err error) {
	err = h.box.inHistory(ctx, func(ctx context.Context) error {
		p, err = h.h.Save(ctx)
		return err
	})
	return p, err
}

func (h *history) Points(ctx context.Context) (all []sandbox.Point, err error) {
	err = h.box.inHistory(ctx, func(ctx context.Context) error {
		all, err = h.h.Points(ctx)
		return err
	})
	return all, err
}

func (h *history) Forget(ctx context.Context, points ...sandbox.Point) error {
	return h.box.inHistory(ctx, func(ctx context.Context) error {
		return h.h.Forget(ctx, points...)
	})
}

func (h *history) Changes(ctx context.Context, p sandbox.Point) (
	list []sandbox.Change, err error) {
	err = h.box.inHistory(ctx, func(ctx context.Context) error {
		list, err = h.h.Changes(ctx, p)
		return err
	})
	return list, err
}

func (h *history) Back(ctx context.Context, p sandbox.Point) (saved sandbox.Point, err error) {
	err = h.box.inHistory(ctx, func(ctx context.Context) error {
		saved, err = h.h.Back(ctx, p)
		return err
	})
	return saved, err
}
