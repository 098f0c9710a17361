package e2b

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"path"
	"sync"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
)

const (
	// maxWatchers bounds the watchers of a box that clients ask from time to time.
	maxWatchers = 64
	// maxWatched bounds the events of such a watcher that wait to be asked for.
	maxWatched = 10_000
)

// watch begins to watch a directory.
func (c *call) watch(ctx context.Context, req *e2b.WatchRequest) (
	changes iter.Seq2[sandbox.FileEvent, error], dir string, err error) {
	dir = c.account.path(req.Path)
	var opts []sandbox.WatchOption
	if req.Recursive {
		opts = append(opts, sandbox.Recursive())
	}
	info, err := c.box.Files().Stat(ctx, dir)
	if err != nil {
		return nil, "", fileError("path", dir, err)
	}
	if !info.IsDir() {
		return nil, "", e2b.Errorf(e2b.InvalidArgument, "%q is not a directory", dir)
	}
	if changes, err = c.box.Files().Watch(ctx, dir, opts...); err != nil {
		return nil, "", fileError("directory", dir, err)
	}
	return changes, dir, nil
}

var eventTypes = map[sandbox.FileOp]e2b.EventType{sandbox.FileCreated: e2b.EventCreate,
	sandbox.FileWritten: e2b.EventWrite, sandbox.FileRemoved: e2b.EventRemove,
	sandbox.FileAttributes: e2b.EventChmod}

// events returns the events that E2B's clients get for a change. A file that is renamed within the
// directory is EventRename for its old name, and EventCreate for its new one.
func (c *call) events(ctx context.Context, change sandbox.FileEvent, dir string,
	withEntry bool) (events []*e2b.FileEvent) {
	if change.Name == "" {
		return nil // the directory itself
	}
	if change.Op == sandbox.FileCreated && change.From != "" {
		events = append(events, &e2b.FileEvent{Name: change.From, Type: e2b.EventRename})
	}
	e := &e2b.FileEvent{Name: change.Name, Type: eventTypes[change.Op]}
	if withEntry && change.Op != sandbox.FileRemoved {
		name := path.Join(dir, change.Name)
		if info, err := c.box.Files().Lstat(ctx, name); err == nil {
			e.Entry = c.entry(&names{ctx: ctx, box: c.box}, name, info)
		}
	}
	return append(events, e)
}

// errOverflow ends a watch that has lost changes.
var errOverflow = e2b.Errorf(e2b.ResourceExhausted, "there were more changes than are kept: some "+
	"are lost: look at the files, and watch again")

// watchDir sends the changes of a directory until the client goes.
func (c *call) watchDir(req *e2b.WatchRequest, send func(any) error) error {
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	changes, dir, err := c.watch(ctx, req)
	if err != nil {
		return err
	}
	if err := send(&e2b.WatchResponse{Start: &e2b.Empty{}}); err != nil {
		return err
	}
	ticks, stop := c.keepAlive()
	defer stop()
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel(nil)
	beside.Go(func() {
		for {
			select {
			case <-ticks:
				if err := send(&e2b.WatchResponse{KeepAlive: &e2b.Empty{}}); err != nil {
					cancel(err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	for change, err := range changes {
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fileError("directory", dir, err)
		}
		if change.Op == sandbox.FileOverflow {
			return errOverflow
		}
		for _, e := range c.events(ctx, change, dir, req.IncludeEntry) {
			if err := send(&e2b.WatchResponse{Filesystem: e}); err != nil {
				return err
			}
		}
	}
	return nil
}

// A watcher watches a directory for a client that asks from time to time.
type watcher struct {
	stop context.CancelFunc

	mu     sync.Mutex
	events []*e2b.FileEvent
	err    error // why it has ended
}

func (c *call) createWatcher(req *e2b.WatchRequest) (any, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.r.Context()))
	starting := context.AfterFunc(c.r.Context(), cancel)
	changes, dir, err := c.watch(ctx, req)
	if err == nil && !starting() {
		err = context.Cause(c.r.Context())
	}
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watcher{stop: cancel}
	id := rand.Text()
	b := c.state
	b.mu.Lock()
	if len(b.watchers) >= maxWatchers {
		b.mu.Unlock()
		cancel()
		return nil, e2b.Errorf(e2b.ResourceExhausted, "the sandbox has %d watchers: remove some",
			maxWatchers)
	}
	if b.watchers == nil {
		b.watchers = map[string]*watcher{}
	}
	b.watchers[id] = w
	b.users++
	b.mu.Unlock()
	go func() {
		w.collect(ctx, c, changes, dir, req.IncludeEntry)
		if errors.Is(ctx.Err(), context.Canceled) || isGone(w.err) {
			b.dropWatcher(id)
		}
	}()
	return &e2b.Watcher{ID: id}, nil
}

// collect keeps the changes until the watch ends.
func (w *watcher) collect(ctx context.Context, c *call,
	changes iter.Seq2[sandbox.FileEvent, error], dir string, withEntry bool) {
	for change, err := range changes {
		var events []*e2b.FileEvent
		switch {
		case err != nil:
			err = fileError("directory", dir, err)
		case change.Op == sandbox.FileOverflow:
			err = errOverflow
		default:
			events = c.events(ctx, change, dir, withEntry)
		}
		w.mu.Lock()
		if len(w.events)+len(events) > maxWatched {
			err = errOverflow
		}
		w.events, w.err = append(w.events, events...), err
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (b *state) watcher(id string) (*watcher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.watchers[id]; w != nil {
		return w, nil
	}
	return nil, e2b.Errorf(e2b.NotFound, "watcher with id %q not found", id)
}

// dropWatcher forgets a watcher.
func (b *state) dropWatcher(id string) {
	b.mu.Lock()
	w := b.watchers[id]
	delete(b.watchers, id)
	b.mu.Unlock()
	if w != nil {
		w.stop()
		b.release()
	}
}

// watcherEvents returns the changes since the last call. When all have been returned, the next call
// says why the watch has ended, if it has.
func (c *call) watcherEvents(req *e2b.Watcher) (any, error) {
	w, err := c.state.watcher(req.ID)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 && w.err != nil {
		return nil, w.err
	}
	events := w.events
	w.events = nil
	return &e2b.WatcherEvents{Events: events}, nil
}

func (c *call) removeWatcher(req *e2b.Watcher) (any, error) {
	if _, err := c.state.watcher(req.ID); err != nil {
		return nil, err
	}
	c.state.dropWatcher(req.ID)
	return &e2b.Empty{}, nil
}
