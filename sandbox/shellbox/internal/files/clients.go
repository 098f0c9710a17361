package files

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/shfiles"
)

// clients are the Clients of a Box: the one that new calls use, and older ones that still have
// calls or open files.
type clients struct {
	turn chan struct{} // has an element while a client is chosen or opened

	mu      sync.Mutex
	current *sharedClient
	all     map[*sharedClient]struct{}
	running sync.WaitGroup // the goroutines of calls, and of clients that are being closed
}

func newClients() *clients {
	return &clients{turn: make(chan struct{}, 1), all: map[*sharedClient]struct{}{}}
}

// A sharedClient is a Client with a count of its users. The lock of clients guards the fields.
type sharedClient struct {
	Client
	clients   *clients
	users     int // calls and open files
	files     map[*openFile]struct{}
	abandoned int  // calls whose callers no longer wait for them; they count as users too
	retired   bool // it gets no new users
	closing   bool
	closed    chan struct{} // closed when Close has returned
}

// acquire returns a client for one more user, who must release it.
func (f *Files) acquire(ctx context.Context) (*sharedClient, error) {
	cs := f.clients
	if f.user != "" {
		defer f.users.used(f)
	}
	select {
	case cs.turn <- struct{}{}:
		defer func() { <-cs.turn }()
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	cs.mu.Lock()
	c := cs.current
	if c != nil && c.Err() == nil {
		c.users++
		cs.mu.Unlock()
		return c, nil
	}
	cs.mu.Unlock()
	if c != nil {
		c.retire()
	}
	opened, err := f.openClient(ctx)
	if err != nil {
		return nil, err
	}
	c = &sharedClient{Client: opened, clients: cs, users: 1, files: map[*openFile]struct{}{},
		closed: make(chan struct{})}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.current = c
	cs.all[c] = struct{}{}
	return c, nil
}

// openClient opens the host's own Client or, if it has none, one that runs a shell.
func (f *Files) openClient(ctx context.Context) (Client, error) {
	c, unsupported := f.box.Open(ctx)
	if !errors.Is(unsupported, errors.ErrUnsupported) {
		return c, unsupported
	}
	sh, err := shfiles.New(ctx, f.box.Run)
	switch {
	case err == nil:
		return sh, nil
	case unsupported == errors.ErrUnsupported: // it says nothing more
		return nil, err
	}
	return nil, errors.Join(err, unsupported)
}

// retire makes new calls use another client.
func (cs *clients) retire() {
	cs.mu.Lock()
	c := cs.current
	cs.mu.Unlock()
	if c != nil {
		c.retire()
	}
}

// retire makes new calls use another client.
func (c *sharedClient) retire() { c.update(func() { c.retired = true }) }

func (c *sharedClient) release() { c.update(func() { c.users-- }) }

// update changes c under the lock. It closes c if c is retired and has no users but abandoned
// calls: only Close can end those.
func (c *sharedClient) update(change func()) {
	cs := c.clients
	cs.mu.Lock()
	defer cs.mu.Unlock()
	change()
	if c.retired && cs.current == c {
		cs.current = nil
	}
	if _, open := cs.all[c]; open && c.retired && c.users == c.abandoned {
		delete(cs.all, c)
		c.closing = true
		cs.running.Go(c.close)
	}
}

func (c *sharedClient) close() {
	c.Close()
	c.clients.mu.Lock()
	files := c.files
	c.files = nil
	c.clients.mu.Unlock()
	for o := range files {
		o.file.Close()
	}
	close(c.closed)
}

// How long a call may go on after the end of its context: until it notices that, between two
// requests, and until it has undone what it had begun. After that its caller abandons it.
const (
	ctxGrace  = 250 * time.Millisecond
	undoGrace = 2 * time.Second
)

// do calls work, and releases the client when work has returned. If ctx ends and work has not
// returned within grace, do abandons work and returns.
func (c *sharedClient) do(ctx context.Context, grace time.Duration, work func() error) error {
	done := make(chan error, 1)
	// set by work when it returns or by do when it abandons work, whichever is first
	var settled atomic.Bool
	c.clients.running.Go(func() {
		err := work()
		if settled.CompareAndSwap(false, true) {
			c.release()
		} else {
			c.update(func() { c.abandoned--; c.users-- })
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	if !settled.CompareAndSwap(false, true) {
		return <-done
	}
	c.update(func() { c.abandoned++; c.retired = true })
	return ctxerr.Of(ctx)
}

// close closes all clients, and returns when no call is left.
func (cs *clients) close() {
	cs.mu.Lock()
	all := cs.all
	cs.all, cs.current = map[*sharedClient]struct{}{}, nil
	cs.mu.Unlock()
	for c := range all {
		cs.running.Go(c.close)
	}
	cs.running.Wait()
}
