package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/internal/wholefile"
	"github.com/sandshell/sandshell/sandbox"
)

// A call is one call of Files.
type call struct {
	op, name string
	changes  bool // it does more than read, so it must not be done twice
	// undo, if not nil, is called at the end of the call. It removes what the call has left behind
	// because ctx or the client has ended.
	undo func(context.Context)
}

// do does a call: work gets a client and the absolute path that the call's name stands for. If the
// client has ended and the call changes nothing, do calls work again, with another client.
func (f *Files) do(ctx context.Context, c call,
	work func(ctx context.Context, client *sharedClient, path string) error) error {
	path, err := f.box.Path(c.name)
	if err != nil {
		return c.failed(err)
	}
	ctx, done, err := f.box.Call(ctx)
	if err != nil {
		return c.failed(err)
	}
	defer done()
	if c.undo != nil {
		defer c.undo(context.WithoutCancel(ctx))
	}
	for again := !c.changes; ; again = false {
		client, err := f.acquire(ctx)
		if err == nil {
			grace := ctxGrace
			if c.undo != nil {
				grace = undoGrace
			}
			err = client.do(ctx, grace, func() error {
				path, err := expandHome(client, path)
				if err != nil {
					return err
				}
				return work(ctx, client, path)
			})
		}
		if errors.Is(err, sandbox.ErrCut) && ctx.Err() == nil {
			if again {
				continue
			}
			err = f.box.Lost(err)
		}
		if err = ctxerr.Explain(ctx, err); err != nil {
			return c.failed(err)
		}
		return nil
	}
}

// failed returns the error of a call in the form that package os gives it.
func (c call) failed(err error) error {
	var large *sandbox.TooLargeError
	if errors.As(err, &large) {
		return large
	}
	return &fs.PathError{Op: c.op, Path: c.name, Err: wholefile.Reason(err)}
}

func expandHome(c Client, path string) (string, error) {
	if path[0] != '~' {
		return path, nil
	}
	home, err := c.Home()
	return archive.ExpandHome(path, home), err
}

// valueOf is do for work that returns a value. After an error it does not read that value: work
// that was abandoned may still write it.
func valueOf[T any](ctx context.Context, f *Files, c call,
	work func(ctx context.Context, client *sharedClient, path string) (T, error)) (T, error) {
	var value, none T
	err := f.do(ctx, c, func(ctx context.Context, client *sharedClient, path string) (err error) {
		value, err = work(ctx, client, path)
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// ReadFile implements sandbox.Files.
func (f *Files) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = sandbox.DefaultReadLimit
	}
	return valueOf(ctx, f, call{op: "read", name: name},
		func(ctx context.Context, c *sharedClient, path string) ([]byte, error) {
			if whole, ok := c.Client.(hostapi.WholeFiler); ok {
				data, err := whole.ReadWhole(path, limit)
				var large *sandbox.TooLargeError
				if errors.As(err, &large) {
					large.Name = name
				}
				if !errors.Is(err, hostapi.ErrLong) {
					return data, err
				}
			}
			file, err := c.Open(path)
			if err != nil {
				return nil, err
			}
			// The call need not wait for the answer, which says nothing.
			defer c.clients.running.Go(func() { file.Close() })
			return wholefile.Read(ctx, file, name, limit)
		})
}

// MkdirAll implements sandbox.Files.
func (f *Files) MkdirAll(ctx context.Context, name string, perm fs.FileMode) error {
	return f.do(ctx, call{op: "mkdir", name: name, changes: true},
		func(ctx context.Context, c *sharedClient, path string) error {
			return wholefile.MkdirAll(ctx, c, path, perm)
		})
}

// Rename implements sandbox.Files.
func (f *Files) Rename(ctx context.Context, from, to string) error {
	target, err := f.box.Path(to)
	if err == nil {
		err = f.do(ctx, call{op: "rename", name: from, changes: true},
			func(_ context.Context, c *sharedClient, path string) error {
				target, err := expandHome(c, target)
				if err != nil {
					return err
				}
				return c.Rename(path, target)
			})
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: wholefile.Reason(err)}
	}
	return nil
}

// Remove implements sandbox.Files.
func (f *Files) Remove(ctx context.Context, name string) error {
	return f.do(ctx, call{op: "remove", name: name, changes: true},
		func(_ context.Context, c *sharedClient, path string) error {
			return c.Remove(path)
		})
}

// RemoveAll implements sandbox.Files.
func (f *Files) RemoveAll(ctx context.Context, name string) error {
	return f.do(ctx, call{op: "remove", name: name, changes: true},
		func(ctx context.Context, c *sharedClient, path string) error {
			// with a slash at its end, the path of a link means the link's target
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

// A removal is one RemoveAll.
type removal struct {
	ctx    context.Context
	client Client
	top    string
}

// longPath is a length of paths that comes near some systems' limit. A directory whose path is
// longer than top by more than that is moved up before it is removed.
const longPath = 2 << 10

// remove removes the file or the directory at path. It goes on after an error, and returns the
// first. If a directory has more files than ReadDir returns at once, remove removes those and reads
// the directory again.
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
				first = fmt.Errorf("%s: %w", entry.Name(), wholefile.Reason(err))
			}
		}
	}
	if err := r.client.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		first = cmp.Or(first, err)
	}
	return first
}
