package sftpfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/pkg/sftp"

	"github.com/sandshell/sandshell/internal/errnos"
)

// SFTP has eight error codes. boxd's server adds a message that ends with the kernel's text for the
// error. OpenSSH's message is only "Failure", so the client looks at the files to find the reason.

// explain returns the error of an operation as package os would return it.
func (c *Client) explain(op, name string, err error) error {
	var status *sftp.StatusError
	switch {
	case err == nil, err == io.EOF, errors.As(err, new(sizeError)):
		return err
	case errors.Is(err, sftp.ErrSSHFxConnectionLost), c.Err() != nil:
		return ErrEnded
	case errors.Is(err, fs.ErrClosed):
		return fs.ErrClosed
	case errors.Is(err, syscall.ENAMETOOLONG):
		return syscall.ENAMETOOLONG
	case errors.Is(err, fs.ErrPermission):
		return syscall.EACCES
	case errors.Is(err, fs.ErrNotExist):
		if !c.server.Own && c.isFile(op, name) {
			return syscall.ENOTDIR
		}
		return syscall.ENOENT
	case !errors.As(err, &status):
		return fmt.Errorf("%w: %w", ErrEnded, err) // a stream has failed
	case status.FxCode() == sftp.ErrSSHFxOpUnsupported:
		return fmt.Errorf("%w by the file server", errors.ErrUnsupported)
	}
	if errno := errnoOf(status); errno != 0 {
		return errno
	}
	if !c.server.Own {
		if errno := c.guessErrno(op, name); errno != 0 {
			return errno
		}
	}
	return status
}

// explainRename is explain for two names.
func (c *Client) explainRename(from, to string, err error) error {
	var status *sftp.StatusError
	if c.server.Own || !errors.As(err, &status) && !errors.Is(err, fs.ErrNotExist) {
		return c.explain("rename", to, err)
	}
	source, serr := c.sftp.Lstat(from)
	target, terr := c.sftp.Lstat(to)
	switch {
	case serr != nil || terr != nil:
	case target.IsDir(): // the error of os.Rename
		return syscall.EEXIST
	case source.IsDir():
		return syscall.ENOTDIR
	}
	return c.explain("rename", to, err)
}

// errnoOf returns the error that the server's message ends with, or 0 if it names none. In the text
// of status, the message is in quotes, and the code follows.
func errnoOf(status *sftp.StatusError) syscall.Errno {
	text := status.Error()
	if end := strings.LastIndex(text, `" (`); end >= 0 {
		text = text[:end]
	}
	return errnos.Of(strings.Trim(text, `"`))
}

// isFile reports whether name, which does not exist according to the server, fails with ENOTDIR
// instead: OpenSSH's server reports both errors in the same way.
func (c *Client) isFile(op, name string) bool {
	if op == "readdir" {
		if info, err := c.sftp.Stat(name); err == nil && !info.IsDir() {
			return true
		}
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) { // for "f/", the first dir is f
		info, err := c.sftp.Stat(dir)
		if err == nil || dir == "/" || dir == "." {
			return err == nil && !info.IsDir()
		}
	}
}

// hasEntries reports whether a directory is not empty.
func (c *Client) hasEntries(dir string) bool {
	entries, err := c.list(dir)
	return err == nil && len(entries) > 0
}

const (
	nameMax      = 255 // the longest name on most file systems
	readOnlyFlag = 1   // of a read-only file system, in an answer of statvfs@openssh.com
)

// guessErrno returns the probable reason of a failed operation, or 0 if nothing explains it.
func (c *Client) guessErrno(op, name string) syscall.Errno {
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > nameMax {
			return syscall.ENAMETOOLONG
		}
	}
	info, err := c.sftp.Lstat(name)
	switch op {
	case "mkdir", "create", "symlink":
		if err == nil {
			return syscall.EEXIST
		}
	case "remove":
		if err == nil && info.IsDir() && c.hasEntries(name) {
			return syscall.ENOTEMPTY
		}
	case "read":
		if err == nil && info.IsDir() {
			return syscall.EISDIR
		}
	case "readdir":
		if err == nil && !info.IsDir() {
			return syscall.ENOTDIR
		}
	}
	switch op {
	case "mkdir", "create", "symlink", "write", "rename", "remove", "chmod", "chown":
		return c.fullOrReadOnly(path.Dir(strings.TrimRight(name, "/")))
	}
	return 0
}

// fullOrReadOnly returns the error of a write to the file system of dir if it is read-only or full,
// and otherwise 0.
func (c *Client) fullOrReadOnly(dir string) syscall.Errno {
	system, err := c.sftp.StatVFS(dir)
	switch {
	case err != nil:
		return 0
	case system.Flag&readOnlyFlag != 0:
		return syscall.EROFS
	case system.Bavail == 0 || system.Files > 0 && system.Favail == 0:
		return syscall.ENOSPC
	}
	return 0
}
