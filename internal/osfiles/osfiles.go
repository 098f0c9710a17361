// Package osfiles implements shellbox.FileClient for the files of this machine, with the rights of
// this process.
package osfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// A Client implements shellbox.FileClient. Its calls are system calls of this process.
type Client struct{}

var (
	_ hostapi.Replacer   = Client{}
	_ hostapi.Attributer = Client{}
)

func (Client) Home() (string, error)                  { return os.UserHomeDir() }
func (Client) Stat(name string) (fs.FileInfo, error)  { return os.Stat(name) }
func (Client) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (Client) ReadLink(name string) (string, error)   { return os.Readlink(name) }
func (Client) Chmod(name string, mode fs.FileMode) error {
	return os.Chmod(name, mode)
}
func (Client) SetOwner(name string, uid, gid int) error { return os.Chown(name, uid, gid) }
func (Client) Symlink(target, name string) error        { return os.Symlink(target, name) }
func (Client) Rename(from, to string) error             { return os.Rename(from, to) }
func (Client) Remove(name string) error                 { return os.Remove(name) }
func (Client) Mkdir(name string) error                  { return os.Mkdir(name, 0o700) }
func (Client) Err() error                               { return nil }
func (Client) Close() error                             { return nil }

// Replace implements hostapi.Replacer.
func (Client) Replace(from, to string) error {
	copyAttributes(to, from)
	return os.Rename(from, to)
}

// Open opens a regular file. O_NONBLOCK keeps it from waiting for the writer of a FIFO.
func (Client) Open(name string) (sandbox.File, error) {
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
		err = fmt.Errorf("%w: not a regular file (%v)", fs.ErrInvalid, info.Mode().Type())
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (Client) Create(name string) (io.WriteCloser, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// ReadDir leaves out files that are removed while it reads.
func (Client) ReadDir(name string) ([]fs.FileInfo, error) {
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
