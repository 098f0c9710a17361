package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"syscall"

	"github.com/sandshell/sandshell/internal/wholefile"
	"github.com/sandshell/sandshell/sandbox"
)

// A description is a FileInfo whose Sys is a *sandbox.FileStat, or nil.
type description struct {
	fs.FileInfo
	stat *sandbox.FileStat
}

func (d description) Sys() any {
	if d.stat == nil {
		return nil
	}
	return d.stat
}

// described returns info, of the client, as Files returns it.
func (c *sharedClient) described(info fs.FileInfo) fs.FileInfo {
	d := description{FileInfo: info}
	if of, ok := c.Client.(Changer); ok {
		if uid, gid, ok := of.OwnerOf(info); ok {
			d.stat = &sandbox.FileStat{UID: uid, GID: gid}
		}
	}
	return d
}

func (c *sharedClient) describe(info fs.FileInfo, err error) (fs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return c.described(info), nil
}

// Stat implements sandbox.Files.
func (f *Files) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	return valueOf(ctx, f, call{op: "stat", name: name},
		func(_ context.Context, c *sharedClient, path string) (fs.FileInfo, error) {
			return c.describe(c.Stat(path))
		})
}

// Lstat implements sandbox.Files.
func (f *Files) Lstat(ctx context.Context, name string) (fs.FileInfo, error) {
	return valueOf(ctx, f, call{op: "lstat", name: name},
		func(_ context.Context, c *sharedClient, path string) (fs.FileInfo, error) {
			return c.describe(c.Lstat(path))
		})
}

// ReadLink implements sandbox.Files.
func (f *Files) ReadLink(ctx context.Context, name string) (string, error) {
	return valueOf(ctx, f, call{op: "readlink", name: name},
		func(_ context.Context, c *sharedClient, path string) (string, error) {
			link, err := c.ReadLink(path)
			if err != nil && !errors.Is(err, sandbox.ErrCut) { // servers tell different reasons
				if info, lerr := c.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink == 0 {
					err = fmt.Errorf("%w: not a symbolic link: %w", fs.ErrInvalid, syscall.EINVAL)
				}
			}
			return link, err
		})
}

// ReadDir implements sandbox.Files.
func (f *Files) ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	return valueOf(ctx, f, call{op: "readdir", name: name},
		func(_ context.Context, c *sharedClient, path string) ([]fs.DirEntry, error) {
			infos, err := c.ReadDir(path)
			return entriesOf(c, infos), err
		})
}

func entriesOf(c *sharedClient, infos []fs.FileInfo) []fs.DirEntry {
	entries := make([]fs.DirEntry, 0, len(infos))
	for _, info := range infos {
		entries = append(entries, fs.FileInfoToDirEntry(c.described(info)))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries
}

// Symlink implements sandbox.Files.
func (f *Files) Symlink(ctx context.Context, target, name string) error {
	err := f.change(ctx, "symlink", name, func(c Changer, path string) error {
		return c.Symlink(target, path)
	})
	if err != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: name, Err: wholefile.Reason(err)}
	}
	return nil
}

// Chmod implements sandbox.Files.
func (f *Files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	return f.do(ctx, call{op: "chmod", name: name, changes: true},
		func(_ context.Context, c *sharedClient, path string) error {
			return c.Chmod(path,
				mode&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
		})
}

// Chown implements sandbox.Files.
func (f *Files) Chown(ctx context.Context, name string, uid, gid int) error {
	return f.change(ctx, "chown", name, func(c Changer, path string) error {
		if !isOwner(uid) || !isOwner(gid) {
			return fmt.Errorf("%w: no user or group has such a number", fs.ErrInvalid)
		}
		return c.SetOwner(path, uid, gid)
	})
}

// isOwner reports whether id is a number for Chown: -1, or less than that of 32 bits, which means
// -1 to the kernel.
func isOwner(id int) bool { return id >= -1 && int64(id) < math.MaxUint32 }

// change does a call that needs a Changer.
func (f *Files) change(ctx context.Context, op, name string,
	work func(c Changer, path string) error) error {
	return f.do(ctx, call{op: op, name: name, changes: true},
		func(_ context.Context, c *sharedClient, path string) error {
			of, ok := c.Client.(Changer)
			if !ok {
				return fmt.Errorf("%w: %s has no such call for its files", errors.ErrUnsupported,
					f.box.Name)
			}
			return work(of, path)
		})
}
