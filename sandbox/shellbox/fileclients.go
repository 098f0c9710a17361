package shellbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/shfiles"
)

// fileClients are the FileClients of a Box: the one that new calls use, and those of which there
// are calls and open files left.
type fileClients struct {
	turn chan struct{} // held while a client is chosen or opened

	mu      sync.Mutex
	current *fileUse
	all     map[*fileUse]struct{}
	running sync.WaitGroup // the goroutines of calls, and of clients that are being closed
}

func newFileClients() *fileClients {
	return &fileClients{turn: make(chan struct{}, 1), all: map[*fileUse]struct{}{}}
}

// A fileUse is a FileClient and who uses it. The lock of fileClients guards it.
type fileUse struct {
	FileClient
	clients   *fileClients
	users     int // calls and open files
	files     map[*openFile]struct{}
	abandoned int  // those of them that nobody waits for any more
	retired   bool // it gets no new users
	closing   bool
	down      chan struct{} // closed when it has been closed
}

// acquire returns a client for one more user, who must release it.
func (f *fileClients) acquire(ctx context.Context, box *Box) (*fileUse, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	f.mu.Lock()
	u := f.current
	if u != nil && u.Err() == nil {
		u.users++
		f.mu.Unlock()
		return u, nil
	}
	f.mu.Unlock()
	if u != nil {
		u.retire()
	}
	client, err := box.openFiles(ctx)
	if err != nil {
		return nil, err
	}
	u = &fileUse{FileClient: client, clients: f, users: 1, files: map[*openFile]struct{}{},
		down: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = u
	f.all[u] = struct{}{}
	return u, nil
}

// openFiles makes a way to the files: the host's, else one by a shell.
func (b *Box) openFiles(ctx context.Context) (FileClient, error) {
	var none error
	if open := b.fileOpener(); open != nil {
		client, err := open(ctx)
		if !errors.Is(err, errors.ErrUnsupported) {
			return client, err
		}
		none = err
	}
	client, err := shfiles.New(ctx, b.runs)
	if err != nil {
		return nil, errors.Join(err, none)
	}
	return client, nil
}

// retire has new calls use another client.
func (u *fileUse) retire() { u.update(func() { u.retired = true }) }

func (u *fileUse) release() { u.update(func() { u.users-- }) }

// update changes u, and closes it if nobody needs it any more: nobody else may free those who hang
// in it.
func (u *fileUse) update(change func()) {
	f := u.clients
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	if u.retired && f.current == u {
		f.current = nil
	}
	if _, open := f.all[u]; open && u.retired && u.users == u.abandoned {
		delete(f.all, u)
		u.closing = true
		f.running.Go(u.close)
	}
}

func (u *fileUse) close() {
	u.Close()
	u.clients.mu.Lock()
	files := u.files
	u.files = nil
	u.clients.mu.Unlock()
	for o := range files {
		o.file.Close()
	}
	close(u.down)
}

// How long a call may take to notice the end of its context by itself, between two requests, and to
// undo what it has begun. Then its caller lets go of it.
const (
	heed     = 250 * time.Millisecond
	heedUndo = 2 * time.Second
)

// do calls work, and releases the client when work has returned. It returns earlier if ctx ends and
// work does not heed that in time.
func (u *fileUse) do(ctx context.Context, heed time.Duration, work func() error) error {
	done := make(chan error, 1)
	// by the one who comes first: work that returns, or its caller who lets go
	var settled atomic.Bool
	u.clients.running.Go(func() {
		err := work()
		if settled.CompareAndSwap(false, true) {
			u.release()
		} else {
			u.update(func() { u.abandoned--; u.users-- })
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(heed)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
	}
	if !settled.CompareAndSwap(false, true) {
		return <-done
	}
	u.update(func() { u.abandoned++; u.retired = true })
	return ctxerr.Of(ctx)
}

// close closes all clients, and returns when no call is left.
func (f *fileClients) close() {
	f.mu.Lock()
	all := f.all
	f.all, f.current = map[*fileUse]struct{}{}, nil
	f.mu.Unlock()
	for u := range all {
		f.running.Go(u.close)
	}
	f.running.Wait()
}
