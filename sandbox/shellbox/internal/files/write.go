package files

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/internal/wholefile"
	"github.com/sandshell/sandshell/sandbox"
)

// WriteFile implements sandbox.Files.
func (f *Files) WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode,
	opts ...sandbox.WriteOption) error {
	var o sandbox.WriteOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	w := hostapi.Write{Data: data, Perm: perm, Parents: o.Parents, Temp: tempname.New()}
	var mayBeLeft atomic.Pointer[leftover]
	undo := func(ctx context.Context) {
		if left := mayBeLeft.Load(); left != nil {
			f.removeLeftover(ctx, left)
		}
	}
	return f.do(ctx, call{op: "write", name: name, changes: true, undo: undo},
		func(ctx context.Context, c *sharedClient, path string) error {
			mayBeLeft.Store(&leftover{c, path, w})
			left, err := write(ctx, c, path, w)
			if !left {
				mayBeLeft.Store(nil)
			}
			return err
		})
}

// write writes a file. left reports whether its temporary file may be left.
func write(ctx context.Context, c *sharedClient, path string,
	w hostapi.Write) (left bool, err error) {
	if whole, ok := c.Client.(hostapi.WholeFiler); ok {
		if err := whole.WriteWhole(path, w); !errors.Is(err, hostapi.ErrLong) {
			return c.Err() != nil, err
		}
	}
	return wholefile.Write(ctx, c.Client, path, w)
}

// A leftover is a write whose temporary file is to be removed.
type leftover struct {
	by    *sharedClient // the client that has made the file, or may still be making it
	path  string
	write hostapi.Write
}

// leftoverLimit bounds the removal of a leftover: the host may not answer at all.
const leftoverLimit = 5 * time.Second

// removeLeftover removes the temporary file of a WriteFile whose client has ended or hangs.
func (f *Files) removeLeftover(ctx context.Context, left *leftover) {
	ctx, cancel := context.WithTimeout(ctx, leftoverLimit)
	defer cancel()
	clients := f.clients
	clients.mu.Lock()
	closing := left.by.closing
	clients.mu.Unlock()
	if closing { // until it is closed, it may still make the file
		select {
		case <-left.by.closed:
		case <-ctx.Done():
		}
	}
	if c, err := f.acquire(ctx); err == nil {
		c.do(ctx, ctxGrace, func() error {
			return wholefile.RemoveTemp(c.Client, left.path, left.write)
		})
	}
}
