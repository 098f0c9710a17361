package files

import (
	"context"
	"io"
	"io/fs"
	"path"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/internal/wholefile"
	"github.com/sandshell/sandshell/sandbox"
)

// FS implements sandbox.Files.
func (f *Files) FS(ctx context.Context, dir string) fs.FS {
	at, err := f.box.Path(dir)
	return &view{ctx: ctx, files: f, dir: at, err: err}
}

// A view is an fs.FS of a directory. The calls of io/fs have no contexts, so ctx governs all of
// them.
type view struct {
	ctx   context.Context
	files *Files
	dir   string
	err   error // why dir has no path; every call returns it
}

var (
	_ fs.ReadDirFS  = (*view)(nil)
	_ fs.ReadFileFS = (*view)(nil)
	_ fs.StatFS     = (*view)(nil)
)

// call checks a name, and calls f with the box's name of the same file. Its error has the name that
// io/fs expects.
func (v *view) call(op, name string, f func(at string) error) error {
	err := v.err
	if err == nil && !fs.ValidPath(name) {
		err = fs.ErrInvalid
	}
	if err == nil {
		at := v.dir
		if name != "." {
			at += "/" + name
		}
		err = f(at)
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: wholefile.Reason(err)}
	}
	return nil
}

// ReadFile implements fs.ReadFileFS.
func (v *view) ReadFile(name string) (data []byte, err error) {
	err = v.call("read", name, func(at string) (err error) {
		data, err = v.files.ReadFile(v.ctx, at, 0)
		return err
	})
	return data, err
}

// Stat implements fs.StatFS.
func (v *view) Stat(name string) (info fs.FileInfo, err error) {
	err = v.call("stat", name, func(at string) error {
		found, err := v.files.Stat(v.ctx, at)
		info = named{found, path.Base(name)}
		return err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// ReadDir implements fs.ReadDirFS.
func (v *view) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = v.call("readdir", name, func(at string) (err error) {
		entries, err = v.files.ReadDir(v.ctx, at)
		return err
	})
	return entries, err
}

// Open implements fs.FS.
func (v *view) Open(name string) (file fs.File, err error) {
	info, err := v.Stat(name)
	if err != nil {
		return nil, v.call("open", name, func(string) error { return err })
	}
	if info.IsDir() {
		return &viewDir{view: v, name: name, info: info}, nil
	}
	err = v.call("open", name, func(at string) error {
		opened, err := v.files.Open(v.ctx, at)
		file = viewFile{opened, path.Base(name)}
		return err
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// named is a FileInfo with the name that the file has in a view.
type named struct {
	fs.FileInfo
	name string
}

func (n named) Name() string { return n.name }

// A viewFile is an open file of a view.
type viewFile struct {
	sandbox.File
	name string
}

func (f viewFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return named{info, f.name}, nil
}

// A viewDir is an open directory of a view. It holds nothing open in the box.
type viewDir struct {
	view *view
	name string
	info fs.FileInfo

	mu     sync.Mutex
	read   bool
	closed bool
	rest   []fs.DirEntry
}

var _ fs.ReadDirFile = (*viewDir)(nil)

func (d *viewDir) Stat() (fs.FileInfo, error) { return d.info, nil }

func (d *viewDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: syscall.EISDIR}
}

func (d *viewDir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

func (d *viewDir) ReadDir(n int) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &fs.PathError{Op: "readdir", Path: d.name, Err: fs.ErrClosed}
	}
	if !d.read {
		entries, err := d.view.ReadDir(d.name)
		if err != nil {
			return nil, err
		}
		d.rest, d.read = entries, true
	}
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.rest))
	entries := d.rest[:n:n]
	d.rest = d.rest[n:]
	return entries, nil
}
