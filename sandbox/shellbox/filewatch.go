package shellbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A FileWatcher is a FileClient that tells of changes. With any other, Watch of Box.Files is
// errors.ErrUnsupported.
type FileWatcher interface {
	FileClient
	// Watch begins to watch what Files.Watch does. When it returns, changes are seen. ctx governs
	// the beginning only, and the FileClient may be closed before the FileWatch.
	Watch(ctx context.Context, name string) (FileWatch, error)
}

// A FileWatch watches files. The Box closes it before the host.
type FileWatch interface {
	// Next waits for events. Calls come one after the other, and the error is the last. It is
	// fs.ErrNotExist if what is watched is gone, and sandbox.ErrCut if what watches it is.
	Next() ([]sandbox.FileEvent, error)
	Close() error // frees Next, and is called once
}

// Watch implements sandbox.Files. Needs a [FileWatcher].
func (f files) Watch(ctx context.Context,
	name string) (iter.Seq2[sandbox.FileEvent, error], error) {
	w := &fileWatch{box: f.box}
	what := fileCall{op: "watch", name: name}
	err := f.do(ctx, what, func(begin context.Context, c *fileUse, path string) error {
		from, ok := c.FileClient.(FileWatcher)
		if !ok {
			return fmt.Errorf("%w: %s cannot tell of changes of its files", errors.ErrUnsupported,
				f.box.host)
		}
		on, err := from.Watch(begin, path)
		if err != nil {
			return err
		}
		return w.begin(ctx, on) // the caller may be gone: then ctx has ended
	})
	if err != nil {
		return nil, err
	}
	return func(yield func(sandbox.FileEvent, error) bool) {
		defer w.end()
		for {
			events, err := w.on.Next()
			for _, e := range events {
				if w.why(ctx, nil) == nil && !yield(e, nil) {
					return
				}
			}
			if err = w.why(ctx, err); err != nil {
				yield(sandbox.FileEvent{}, what.failed(err))
				return
			}
		}
	}, nil
}

// A fileWatch ends with its loop, with the context of its Watch, or with the box.
type fileWatch struct {
	box    *Box
	on     FileWatch
	ending sync.Once
}

// begin has the watch end with ctx and with the box.
func (w *fileWatch) begin(ctx context.Context, on FileWatch) error {
	w.on = on
	w.box.mu.Lock()
	closed := w.box.closed
	if !closed {
		w.box.watches[w] = context.AfterFunc(ctx, w.end)
	}
	w.box.mu.Unlock()
	if closed {
		w.end()
		return sandbox.ErrClosed
	}
	return nil
}

// end returns when the watch has ended.
func (w *fileWatch) end() {
	w.ending.Do(func() {
		w.box.mu.Lock()
		if stop := w.box.watches[w]; stop != nil {
			stop()
		}
		w.box.mu.Unlock()
		w.on.Close()
		w.box.mu.Lock()
		defer w.box.mu.Unlock()
		delete(w.box.watches, w) // not before: until then, the box's Close waits for it
	})
}

// why returns why a watch has ended: err, unless there is another reason.
func (w *fileWatch) why(ctx context.Context, err error) error {
	switch {
	case w.box.ends():
		return sandbox.ErrClosed
	case ctx.Err() != nil:
		return ctxerr.Of(ctx)
	case errors.Is(err, sandbox.ErrCut):
		return w.box.lostOr(err)
	}
	return err
}

// closeWatches ends all watches.
func (b *Box) closeWatches() {
	b.mu.Lock()
	var closing sync.WaitGroup
	for w := range b.watches { // at once: each may have to wait for the host
		closing.Go(w.end)
	}
	b.mu.Unlock()
	closing.Wait()
}
