package localbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sandshell/sandshell/internal/fswatch"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

var (
	_ shellbox.FileHost    = (*host)(nil)
	_ shellbox.FileWatcher = files{}
	_ hostapi.Replacer     = files{}
)

// OpenFiles implements shellbox.FileHost: this program's own system calls reach the files.
func (h *host) OpenFiles(_ context.Context, user string) (shellbox.FileClient, error) {
	if user != "" {
		return nil, errors.ErrUnsupported
	}
	return files{}, nil
}

// files are this machine's.
type files struct{}

func (files) Home() (string, error)                  { return os.UserHomeDir() }
func (files) Stat(name string) (fs.FileInfo, error)  { return os.Stat(name) }
func (files) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (files) ReadLink(name string) (string, error)   { return os.Readlink(name) }
func (files) Chmod(name string, mode fs.FileMode) error {
	return os.Chmod(name, mode)
}
func (files) Rename(from, to string) error { return os.Rename(from, to) }
func (files) Remove(name string) error     { return os.Remove(name) }
func (files) Mkdir(name string) error      { return os.Mkdir(name, 0o700) }
func (files) Err() error                   { return nil }
func (files) Close() error                 { return nil }

// Watch implements shellbox.FileWatcher.
func (files) Watch(_ context.Context, name string) (shellbox.FileWatch, error) {
	w, err := fswatch.New(name)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Replace implements hostapi.Replacer.
func (files) Replace(from, to string) error {
	copyAttributes(to, from)
	return os.Rename(from, to)
}

// Open does not wait for a FIFO's writer.
func (files) Open(name string) (sandbox.File, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = syscall.EISDIR
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%w: no regular file (%v)", fs.ErrInvalid, info.Mode().Type())
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (files) Create(name string) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// ReadDir leaves out what has gone meanwhile.
func (files) ReadDir(name string) ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(name)
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, entry := range entries {
		info, ierr := entry.Info()
		if errors.Is(ierr, fs.ErrNotExist) {
			continue
		}
		if ierr != nil {
			return nil, ierr
		}
		infos = append(infos, info)
	}
	return infos, err
}
