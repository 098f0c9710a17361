package shellbox

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
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// WriteFile implements sandbox.Files.
func (f files) WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode,
	opts ...sandbox.WriteOption) error {
	w := &fileWrite{data: data, perm: perm}
	for _, opt := range opts {
		if opt != nil {
			opt(&w.WriteOptions)
		}
	}
	undo := func(ctx context.Context) {
		if left := w.temp.Load(); left != nil {
			f.sweep(ctx, left)
		}
	}
	return f.do(ctx, fileCall{op: "write", name: name, changes: true, undo: undo}, w.write)
}

// A fileWrite is a WriteFile.
type fileWrite struct {
	sandbox.WriteOptions
	data []byte
	perm fs.FileMode
	temp atomic.Pointer[leftover] // the temporary file that there may be
}

// A leftover is a file that is to be removed.
type leftover struct {
	by   *fileUse // the use that has made it, and may be making it still
	path string
}

// special are the bits of a mode beside the permissions.
const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func (w *fileWrite) write(ctx context.Context, c *fileUse, name string) error {
	target, old, err := follow(c, name)
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
		if r, ok := c.FileClient.(Replacer); ok {
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

// fill makes the temporary file, which is to replace old; nil if there is no such file.
func (w *fileWrite) fill(ctx context.Context, c *fileUse, temp, dir string, old fs.FileInfo) error {
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
		piece := rest[:min(len(rest), filePiece)]
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
			mode &^= special // they would give another user's rights
		}
	}
	return c.Chmod(temp, mode&(fs.ModePerm|special))
}

// follow returns where a file is that is to be written, symbolic links followed, and what is there;
// nil if there is nothing. Names are not cleaned: what .. means behind a link only the file system
// knows.
func follow(c FileClient, name string) (string, fs.FileInfo, error) {
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

// notRegular is the error of what only a regular file can do.
func notRegular(info fs.FileInfo) error {
	return fmt.Errorf("%w: no regular file (%v)", fs.ErrInvalid, info.Mode().Type())
}

// sweepLimit bounds the wait until what a failed WriteFile has left is gone: what has failed may be
// the way there.
const sweepLimit = 5 * time.Second

// sweep removes what a WriteFile has left behind because its client has ended or hangs.
func (f files) sweep(ctx context.Context, left *leftover) {
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	clients := f.box.fileClients
	clients.mu.Lock()
	closing := left.by.closing
	clients.mu.Unlock()
	if closing { // until it is closed, it may yet make the file
		select {
		case <-left.by.down:
		case <-ctx.Done():
		}
	}
	if u, err := clients.acquire(ctx, f.box); err == nil {
		u.do(ctx, heed, func() error { return u.Remove(left.path) })
	}
}
