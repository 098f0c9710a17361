package files

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// Watch implements sandbox.Files. The error is errors.ErrUnsupported if the host's FileClient is no
// FileWatcher.
func (f *Files) Watch(ctx context.Context, name string,
	opts ...sandbox.WatchOption) (iter.Seq2[sandbox.FileEvent, error], error) {
	o := sandbox.NewWatchOptions(opts...)
	w := &watch{files: f}
	what := call{op: "watch", name: name}
	err := f.do(ctx, what, func(begin context.Context, c *sharedClient, path string) error {
		host, err := f.box.Watch(begin, c.Client, path, o)
		if err != nil {
			return err
		}
		return w.begin(ctx, host) // if the caller has abandoned this call, ctx has ended
	})
	if err != nil {
		return nil, err
	}
	return func(yield func(sandbox.FileEvent, error) bool) {
		defer w.end()
		for {
			events, err := w.host.Next()
			for _, e := range events {
				if w.reason(ctx, nil) == nil && !yield(e, nil) {
					return
				}
			}
			if err = w.reason(ctx, err); err != nil {
				yield(sandbox.FileEvent{}, what.failed(err))
				return
			}
		}
	}, nil
}

// A watch ends with its loop, with the context of its Watch, or with the box.
type watch struct {
	files *Files
	host  Watch
	once  sync.Once
}

// begin arranges that the watch ends with ctx and with the box.
func (w *watch) begin(ctx context.Context, host Watch) error {
	w.host = host
	f := w.files
	f.mu.Lock()
	closed := f.closed || f.box.Closed()
	if !closed {
		f.watches[w] = context.AfterFunc(ctx, w.end)
	}
	f.mu.Unlock()
	if closed {
		w.end()
		return sandbox.ErrClosed
	}
	return nil
}

// end returns when the watch has ended.
func (w *watch) end() {
	w.once.Do(func() {
		f := w.files
		f.mu.Lock()
		if stop := f.watches[w]; stop != nil {
			stop()
		}
		f.mu.Unlock()
		w.host.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, w) // not earlier: CloseWatches waits for the watches that it finds here
	})
}

// reason returns why a watch has ended: err, unless the box or ctx has ended.
func (w *watch) reason(ctx context.Context, err error) error {
	switch {
	case w.files.box.Closed():
		return sandbox.ErrClosed
	case ctx.Err() != nil:
		return ctxerr.Of(ctx)
	case errors.Is(err, sandbox.ErrCut):
		return w.files.box.Lost(err)
	}
	return err
}

// CloseWatches ends all watches, and returns when they have ended.
func (f *Files) CloseWatches() { f.withUsers((*Files).closeWatches) }

func (f *Files) closeWatches() {
	f.mu.Lock()
	f.closed = true
	var closing sync.WaitGroup
	for w := range f.watches { // all at once: each may have to wait for the host
		closing.Go(w.end)
	}
	f.mu.Unlock()
	closing.Wait()
}
