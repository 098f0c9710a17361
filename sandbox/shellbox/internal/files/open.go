package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/wholefile"
	"github.com/sandshell/sandshell/sandbox"
)

// Open implements sandbox.Files.
func (f *Files) Open(ctx context.Context, name string) (sandbox.File, error) {
	var file *openFile
	err := f.do(ctx, call{op: "open", name: name},
		func(ctx context.Context, c *sharedClient, path string) error {
			opened, err := c.Open(path)
			if err != nil {
				return err
			}
			if ctx.Err() != nil { // the caller may have abandoned this call
				opened.Close()
				return ctxerr.Of(ctx)
			}
			file = &openFile{files: f, name: name, client: c, file: opened}
			c.update(func() { c.users++; c.files[file] = struct{}{} })
			return nil
		})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// An openFile implements sandbox.File.
type openFile struct {
	files  *Files
	name   string
	client *sharedClient
	file   sandbox.File

	reading sync.Mutex // Read and Seek hold it
	offset  int64

	closing sync.Once
	mu      sync.Mutex
	closed  bool
}

func (o *openFile) Stat() (info fs.FileInfo, err error) {
	err = o.check("stat", func() (err error) { info, err = o.file.Stat(); return err })
	if err != nil {
		return nil, err
	}
	return o.client.described(info), nil
}

func (o *openFile) ReadAt(p []byte, offset int64) (n int, err error) {
	err = o.check("read", func() (err error) {
		if offset < 0 {
			return fs.ErrInvalid
		}
		n, err = o.file.ReadAt(p, offset)
		return err
	})
	return n, err
}

func (o *openFile) Read(p []byte) (int, error) {
	o.reading.Lock()
	defer o.reading.Unlock()
	n, err := o.ReadAt(p, o.offset)
	o.offset += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (o *openFile) Seek(offset int64, whence int) (int64, error) {
	o.reading.Lock()
	defer o.reading.Unlock()
	var from int64
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		from = o.offset
	case io.SeekEnd:
		info, err := o.Stat()
		if err != nil {
			return 0, err
		}
		from = info.Size()
	default:
		from = -offset - 1
	}
	if from+offset < 0 {
		return 0, &fs.PathError{Op: "seek", Path: o.name, Err: fs.ErrInvalid}
	}
	o.offset = from + offset
	return o.offset, nil
}

// closeLimit bounds the wait for the host when a file is closed.
const closeLimit = time.Second

// Close returns within closeLimit, whether the host answers or not. Reads under way return.
func (o *openFile) Close() error {
	err := &fs.PathError{Op: "close", Path: o.name, Err: fs.ErrClosed}
	o.closing.Do(func() {
		o.mu.Lock()
		o.closed = true
		o.mu.Unlock()
		err = nil
		ctx, done, cerr := o.files.box.Call(context.Background())
		if cerr != nil {
			return // the box's Close closes the client
		}
		defer done()
		ctx, cancel := context.WithTimeout(ctx, closeLimit)
		defer cancel()
		o.client.update(func() { delete(o.client.files, o) })
		o.client.do(ctx, 0, o.file.Close)
	})
	if err != nil {
		return err
	}
	return nil
}

// check makes a call. Its error says what was done and why it failed.
func (o *openFile) check(op string, call func() error) error {
	var err error
	if o.files.box.Closed() {
		err = sandbox.ErrClosed
	} else if err = call(); err == nil || err == io.EOF {
		return err
	}
	err = wholefile.Reason(err)
	o.mu.Lock()
	closed := o.closed
	o.mu.Unlock()
	switch {
	case closed:
		err = fs.ErrClosed
	case o.files.box.Closed():
		err = sandbox.ErrClosed
	case errors.Is(err, sandbox.ErrCut):
		err = o.files.box.Lost(err)
	}
	return &fs.PathError{Op: op, Path: o.name, Err: err}
}
