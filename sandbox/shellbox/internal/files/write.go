package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// WriteFile implements sandbox.Files.
func (f *Files) WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode,
	opts ...sandbox.WriteOption) error {
	w := &fileWrite{data: data, perm: perm}
	for _, opt := range opts {
		if opt != nil {
			opt(&w.WriteOptions)
		}
	}
	undo := func(ctx context.Context) {
		if left := w.temp.Load(); left != nil {
			f.removeLeftover(ctx, left)
		}
	}
	return f.do(ctx, call{op: "write", name: name, changes: true, undo: undo}, w.write)
}

// A fileWrite is one call of WriteFile.
type fileWrite struct {
	sandbox.WriteOptions
	data []byte
	perm fs.FileMode
	temp atomic.Pointer[leftover] // the temporary file that may exist
}

// A leftover is a file that is to be removed.
type leftover struct {
	by   *sharedClient // the client that has made it, or may still be making it
	path string
}

// specialBits are the bits of a mode beside the permissions.
const specialBits = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func (w *fileWrite) write(ctx context.Context, c *sharedClient, name string) error {
	target, old, err := followLinks(c, name)
	if err != nil {
		return err
	}
	dir, base := path.Split(target)
	switch {
	case old == nil && base == "", old != nil && old.IsDir():
		return syscall.EISDIR
	case old != nil && !old.Mode().IsRegular():
		return notRegular(old)
	}
	private, move := tempname.New(), c.Rename
	if old != nil {
		private = tempname.Replacing()
		if r, ok := c.Client.(hostapi.Replacer); ok {
			move = r.Replace
		}
	}
	temp := &leftover{c, dir + private}
	w.temp.Store(temp)
	err = w.fill(ctx, c, temp.path, dir, old)
	if err == nil && ctx.Err() != nil {
		err = ctxerr.Of(ctx)
	}
	if err == nil {
		err = move(temp.path, target)
	}
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("%w: it is a mount of its own", err)
	}
	if err != nil && c.Err() == nil {
		if rerr := c.Remove(temp.path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return err
		}
		w.temp.Store(nil)
	}
	if err == nil {
		w.temp.Store(nil)
	}
	return err
}

// fill makes the temporary file that is to replace old. old is nil if there is no such file.
func (w *fileWrite) fill(ctx context.Context, c *sharedClient, temp, dir string,
	old fs.FileInfo) error {
	file, err := c.Create(temp)
	if w.Parents && errors.Is(err, fs.ErrNotExist) {
		if err := mkdirAll(ctx, c, dir, 0o755); err != nil {
			return err
		}
		file, err = c.Create(temp)
	}
	if err != nil {
		return err
	}
	for rest := w.data; len(rest) > 0 && err == nil; {
		piece := rest[:min(len(rest), chunkSize)]
		rest = rest[len(piece):]
		if _, err = file.Write(piece); err == nil && ctx.Err() != nil {
			err = ctxerr.Of(ctx)
		}
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	mode := w.perm
	if old != nil {
		mode = old.Mode()
		if c.Chown(temp, old) != nil {
			mode &^= specialBits // they would give another user's rights
		}
	}
	return c.Chmod(temp, mode&(fs.ModePerm|specialBits))
}

// followLinks follows symbolic links from name. It returns the path at their end and the file
// there, nil if there is none. It does not clean names: only the file system knows what ".." means
// behind a link.
func followLinks(c Client, name string) (string, fs.FileInfo, error) {
	for range 40 { // as Linux does
		info, err := c.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, nil, nil
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			return name, info, nil
		}
		link, err := c.ReadLink(name)
		if err != nil {
			return "", nil, err
		}
		if !path.IsAbs(link) {
			dir, _ := path.Split(name)
			link = dir + link
		}
		name = link
	}
	return "", nil, syscall.ELOOP
}

// notRegular is the error of an operation that needs a regular file.
func notRegular(info fs.FileInfo) error {
	return fmt.Errorf("%w: no regular file (%v)", fs.ErrInvalid, info.Mode().Type())
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
		c.do(ctx, ctxGrace, func() error { return c.Remove(left.path) })
	}
}
