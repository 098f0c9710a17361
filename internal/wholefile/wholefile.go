// Package wholefile reads and replaces files as a whole, by the calls of a shellbox.FileClient. The
// engine uses it on any host. boxd uses it near the files, so that a call is one question.
package wholefile

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
)

// A Client is what this package needs of a shellbox.FileClient. A Client may also be a
// hostapi.Replacer.
type Client interface {
	Create(name string) (io.WriteCloser, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadLink(name string) (string, error)
	Mkdir(name string) error
	Chmod(name string, mode fs.FileMode) error
	Chown(name string, like fs.FileInfo) error
	Rename(from, to string) error
	Remove(name string) error
	Err() error
}

// ChunkSize is how much is read or written at once. The end of ctx is noticed between two chunks.
// The chunks are so large that the wait for each answer matters little.
const ChunkSize = 1 << 20

// maxPrealloc bounds the memory that is allocated for the size that the box claims. More is
// allocated as data arrives.
const maxPrealloc = sandbox.DefaultReadLimit

// minGrow is how much is read at once of a file that does not report its size.
const minGrow = 32 << 10

// Read reads a file of at most limit bytes. If it has more, the error is a *sandbox.TooLargeError.
func Read(ctx context.Context, file sandbox.File, name string, limit int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := max(info.Size(), 0)
	if size > limit {
		return nil, &sandbox.TooLargeError{Name: name, Size: size, Limit: limit}
	}
	data := make([]byte, 0, min(size, maxPrealloc)+1) // one more, to see the end
	if 0 < size && size <= ChunkSize {
		var whole bool
		if data, whole = readWhole(file, data, size); whole {
			return data, nil
		}
	}
	for {
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
		if len(data) == cap(data) { // the file is large, has no known size, or has grown
			grow := int64(minGrow)
			if rest := size + 1 - int64(len(data)); rest > 0 {
				grow = min(rest, int64(len(data)))
			}
			data = slices.Grow(data, int(grow))
		}
		piece := data[len(data):min(cap(data), len(data)+ChunkSize)]
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

// readWhole reads the size bytes that a file is said to have, and looks at the same time whether it
// ends there. whole is false if the rest, or an error, is still to be read. It appends to data.
func readWhole(file sandbox.File, data []byte, size int64) (_ []byte, whole bool) {
	ends := make(chan bool, 1)
	go func() {
		var more [1]byte
		n, err := file.ReadAt(more[:], size)
		ends <- n == 0 && err == io.EOF
	}()
	n, err := file.ReadAt(data[:size], 0)
	return data[:n], <-ends && int64(n) == size && (err == nil || err == io.EOF)
}

// MkdirAll makes a directory and those above it that are missing, each with the permissions perm.
func MkdirAll(ctx context.Context, c Client, dir string, perm fs.FileMode) error {
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
		if err := MkdirAll(ctx, c, parent, perm); err != nil {
			return err
		}
	}
	if err := c.Mkdir(dir); err != nil {
		// another program has made it, or dir ends with a slash
		if info, serr := c.Stat(dir); serr == nil && info.IsDir() {
			return nil
		}
		return err
	}
	return c.Chmod(dir, perm)
}

// Reason returns an error without the operation and the file's name: a Client's name of the file is
// not the caller's.
func Reason(err error) error {
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
