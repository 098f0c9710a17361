package shellbox

import (
	"context"
	"io"
	"io/fs"
	"path"
	"sync"
	"syscall"

	"github.com/sandshell/sandshell/sandbox"
)

// FS implements sandbox.Files.
func (f files) FS(ctx context.Context, dir string) fs.FS {
	at, err := f.box.copyPath(dir)
	return &fileView{ctx: ctx, files: f, dir: at, err: err}
}

// A fileView is an fs.FS of a directory. io/fs has no contexts: this one is for all its calls.
type fileView struct {
	ctx   context.Context
	files files
	dir   string
	err   error // why there is no such directory
}

var (
	_ fs.ReadDirFS  = (*fileView)(nil)
	_ fs.ReadFileFS = (*fileView)(nil)
	_ fs.StatFS     = (*fileView)(nil)
)

// call checks a name, and calls f with that of the box. The error gets the name that io/fs wants.
func (v *fileView) call(op, name string, f func(at string) error) error {
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
		return &fs.PathError{Op: op, Path: name, Err: bare(err)}
	}
	return nil
}

// ReadFile implements fs.ReadFileFS.
func (v *fileView) ReadFile(name string) (data []byte, err error) {
	err = v.call("read", name, func(at string) (err error) {
		data, err = v.files.ReadFile(v.ctx, at, 0)
		return err
	})
	return data, err
}

// Stat implements fs.StatFS.
func (v *fileView) Stat(name string) (info fs.FileInfo, err error) {
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
func (v *fileView) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = v.call("readdir", name, func(at string) (err error) {
		entries, err = v.files.ReadDir(v.ctx, at)
		return err
	})
	return entries, err
}

// Open implements fs.FS.
func (v *fileView) Open(name string) (file fs.File, err error) {
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

// named is a FileInfo under the name that a view knows the file by.
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

// A viewDir is an open directory of a view. Nothing of it is open in the box.
type viewDir struct {
	view *fileView
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
