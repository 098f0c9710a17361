package shellbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// Files implements sandbox.Sandbox. Of a Host that is no [FileHost], or has no way to its files,
// they are reached by a shell and the usual tools, a program or two for each call.
func (b *Box) Files() sandbox.Files { return files{b} }

// files are the files of a Box.
type files struct{ box *Box }

// A fileCall is one call of Files.
type fileCall struct {
	op, name string
	changes  bool // it does more than read: it must not be done twice
	// is called at the end, within the call, for what an end of ctx or of the client has left; nil:
	// nothing to do
	undo func(context.Context)
}

// do does a call: work gets a client and the absolute path that the call's name means. It is called
// again, with another client, if the first has ended and the call changes nothing.
func (f files) do(ctx context.Context, c fileCall,
	work func(ctx context.Context, client *fileUse, path string) error) error {
	path, err := f.box.copyPath(c.name)
	if err != nil {
		return c.failed(err)
	}
	ctx, done, err := f.box.call(ctx)
	if err != nil {
		return c.failed(err)
	}
	defer done()
	if c.undo != nil {
		defer c.undo(context.WithoutCancel(ctx))
	}
	for again := !c.changes; ; again = false {
		u, err := f.box.fileClients.acquire(ctx, f.box)
		if err == nil {
			heed := heed
			if c.undo != nil {
				heed = heedUndo
			}
			err = u.do(ctx, heed, func() error {
				path, err := expandHome(u, path)
				if err != nil {
					return err
				}
				return work(ctx, u, path)
			})
		}
		if errors.Is(err, sandbox.ErrCut) && ctx.Err() == nil {
			if again {
				continue
			}
			err = f.box.lostOr(err)
		}
		if err = ctxerr.Explain(ctx, err); err != nil {
			return c.failed(err)
		}
		return nil
	}
}

// failed returns the error of a call, as package os would.
func (c fileCall) failed(err error) error {
	var large *sandbox.TooLargeError
	if errors.As(err, &large) {
		return large
	}
	return &fs.PathError{Op: c.op, Path: c.name, Err: bare(err)}
}

// bare takes an error out of what names the operation and the file: the caller has given another
// name.
func bare(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	case *os.SyscallError:
		return e.Err
	}
	return err
}

func expandHome(c FileClient, path string) (string, error) {
	if path[0] != '~' {
		return path, nil
	}
	home, err := c.Home()
	return archive.ExpandHome(path, home), err
}

// filePiece is how much is read or written at once, and with it how soon the end of ctx is noticed:
// so much that a wait for the answers weighs little.
const filePiece = 1 << 20

// fileValue does what do does, for work that has a value. After an error nothing reads the value:
// work that does not heed the end of ctx may still be about to write it.
func fileValue[T any](ctx context.Context, f files, c fileCall,
	work func(ctx context.Context, u *fileUse, path string) (T, error)) (T, error) {
	var value, none T
	err := f.do(ctx, c, func(ctx context.Context, u *fileUse, path string) (err error) {
		value, err = work(ctx, u, path)
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// ReadFile implements sandbox.Files.
func (f files) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = sandbox.DefaultReadLimit
	}
	return fileValue(ctx, f, fileCall{op: "read", name: name},
		func(ctx context.Context, c *fileUse, path string) ([]byte, error) {
			file, err := c.Open(path)
			if err != nil {
				return nil, err
			}
			defer file.Close()
			return readAll(ctx, file, name, limit)
		})
}

// sizeBelieved is how much memory a file gets for the size that the box tells. More comes as it is
// read.
const sizeBelieved = sandbox.DefaultReadLimit

// sizeless is how much is read at once of a file that does not tell its size.
const sizeless = 32 << 10

// readAll reads a file of at most limit bytes.
func readAll(ctx context.Context, file sandbox.File, name string, limit int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := max(info.Size(), 0)
	if size > limit {
		return nil, &sandbox.TooLargeError{Name: name, Size: size, Limit: limit}
	}
	data := make([]byte, 0, min(size, sizeBelieved)+1) // one more: it shows the end
	for {
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
		if len(data) == cap(data) { // the file is large, has no size, or has grown
			grow := int64(sizeless)
			if rest := size + 1 - int64(len(data)); rest > 0 {
				grow = min(rest, int64(len(data)))
			}
			data = slices.Grow(data, int(grow))
		}
		piece := data[len(data):min(cap(data), len(data)+filePiece)]
		n, err := file.ReadAt(piece, int64(len(data)))
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > limit && size > 0:
			return nil, &sandbox.TooLargeError{Name: name, Size: int64(len(data)), Limit: limit}
		case int64(len(data)) > limit:
			return nil, &sandbox.TooLargeError{Name: name, Size: -1, Limit: limit}
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// Stat implements sandbox.Files.
func (f files) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	return fileValue(ctx, f, fileCall{op: "stat", name: name},
		func(_ context.Context, c *fileUse, path string) (fs.FileInfo, error) {
			return c.Stat(path)
		})
}

// Lstat implements sandbox.Files.
func (f files) Lstat(ctx context.Context, name string) (fs.FileInfo, error) {
	return fileValue(ctx, f, fileCall{op: "lstat", name: name},
		func(_ context.Context, c *fileUse, path string) (fs.FileInfo, error) {
			return c.Lstat(path)
		})
}

// ReadLink implements sandbox.LinkReader.
func (f files) ReadLink(ctx context.Context, name string) (string, error) {
	return fileValue(ctx, f, fileCall{op: "readlink", name: name},
		func(_ context.Context, c *fileUse, path string) (string, error) {
			info, err := c.Lstat(path)
			if err == nil && info.Mode()&fs.ModeSymlink == 0 {
				err = syscall.EINVAL
			}
			if err != nil {
				return "", err
			}
			return c.ReadLink(path)
		})
}

// ReadDir implements sandbox.Files.
func (f files) ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	return fileValue(ctx, f, fileCall{op: "readdir", name: name},
		func(_ context.Context, c *fileUse, path string) ([]fs.DirEntry, error) {
			infos, err := c.ReadDir(path)
			return entriesOf(infos), err
		})
}

func entriesOf(infos []fs.FileInfo) []fs.DirEntry {
	entries := make([]fs.DirEntry, 0, len(infos))
	for _, info := range infos {
		entries = append(entries, fs.FileInfoToDirEntry(info))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries
}

// MkdirAll implements sandbox.Files.
func (f files) MkdirAll(ctx context.Context, name string, perm fs.FileMode) error {
	return f.do(ctx, fileCall{op: "mkdir", name: name, changes: true},
		func(ctx context.Context, c *fileUse, path string) error {
			return mkdirAll(ctx, c, path, perm)
		})
}

func mkdirAll(ctx context.Context, c FileClient, dir string, perm fs.FileMode) error {
	info, err := c.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return syscall.ENOTDIR
	case !errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil:
		return cmp.Or(ctxerr.Of(ctx), err)
	}
	if parent, _ := path.Split(strings.TrimRight(dir, "/")); parent != "" {
		if err := mkdirAll(ctx, c, parent, perm); err != nil {
			return err
		}
	}
	if err := c.Mkdir(dir); err != nil {
		// somebody else has made it, or dir ends with /.
		if info, serr := c.Stat(dir); serr == nil && info.IsDir() {
			return nil
		}
		return err
	}
	return c.Chmod(dir, perm)
}

// Rename implements sandbox.Files.
func (f files) Rename(ctx context.Context, from, to string) error {
	target, err := f.box.copyPath(to)
	if err == nil {
		err = f.do(ctx, fileCall{op: "rename", name: from, changes: true},
			func(_ context.Context, c *fileUse, path string) error {
				target, err := expandHome(c, target)
				if err != nil {
					return err
				}
				return c.Rename(path, target)
			})
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: bare(err)}
	}
	return nil
}

// Remove implements sandbox.Files.
func (f files) Remove(ctx context.Context, name string) error {
	return f.do(ctx, fileCall{op: "remove", name: name, changes: true},
		func(_ context.Context, c *fileUse, path string) error {
			return c.Remove(path)
		})
}

// RemoveAll implements sandbox.Files.
func (f files) RemoveAll(ctx context.Context, name string) error {
	return f.do(ctx, fileCall{op: "remove", name: name, changes: true},
		func(ctx context.Context, c *fileUse, path string) error {
			// behind a slash would be what a link leads to
			for len(path) > 1 && path[len(path)-1] == '/' {
				path = path[:len(path)-1]
			}
			info, err := c.Lstat(path)
			if err == nil {
				r := &removal{ctx: ctx, client: c, top: path}
				err = r.remove(path, info)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
}

// A removal is a RemoveAll of a directory.
type removal struct {
	ctx    context.Context
	client FileClient
	top    string
}

// longPath is where paths become too long for some systems, or soon may. A directory whose path is
// as long is moved up before it is removed.
const longPath = 2 << 10

// remove removes what is at a path. It goes on after an error, and returns the first. A directory
// with more files than ReadDir returns at once is read again, once those are removed.
func (r *removal) remove(path string, info fs.FileInfo) error {
	var first error
	if info.IsDir() && len(path) > len(r.top)+longPath {
		up := r.top + "/" + tempname.New()
		if err := r.client.Rename(path, up); err == nil {
			path = up
		}
	}
	for more := info.IsDir(); more && first == nil; {
		entries, err := r.client.ReadDir(path)
		if more = errors.As(err, new(*bounded.TooLargeError)) && len(entries) > 0; !more {
			first = err
		}
		for _, entry := range entries {
			if r.ctx.Err() != nil {
				return ctxerr.Of(r.ctx)
			}
			err := r.remove(path+"/"+entry.Name(), entry)
			if errors.Is(err, sandbox.ErrCut) {
				return err
			}
			if err != nil && first == nil {
				first = fmt.Errorf("%s: %w", entry.Name(), bare(err))
			}
		}
	}
	if err := r.client.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		first = cmp.Or(first, err)
	}
	return first
}
