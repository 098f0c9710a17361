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

// SFTP has eight errors. boxd's server is Go's: its message ends with the kernel's word. OpenSSH's
// says "Failure": what that may mean is looked up.

// explain returns the error of an operation as package os would.
func (c *Client) explain(op, name string, err error) error {
	var status *sftp.StatusError
	switch {
	case err == nil, err == io.EOF, errors.As(err, new(sizeError)):
		return err
	case errors.Is(err, sftp.ErrSSHFxConnectionLost), c.Err() != nil:
		return errEnded
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
		return fmt.Errorf("%w: %w", errEnded, err) // the streams have broken
	case status.FxCode() == sftp.ErrSSHFxOpUnsupported:
		return fmt.Errorf("%w by the file server", errors.ErrUnsupported)
	}
	if errno := said(status); errno != 0 {
		return errno
	}
	if !c.server.Own {
		if errno := c.guess(op, name); errno != 0 {
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
	case target.IsDir(): // as os.Rename has it
		return syscall.EEXIST
	case source.IsDir():
		return syscall.ENOTDIR
	}
	return c.explain("rename", to, err)
}

// said returns the error that a message ends with; 0 if it tells none. The message is quoted, and
// the status is behind it.
func said(status *sftp.StatusError) syscall.Errno {
	text := status.Error()
	if end := strings.LastIndex(text, `" (`); end >= 0 {
		text = text[:end]
	}
	return errnos.Of(strings.Trim(text, `"`))
}

// isFile reports whether what is said not to exist does, or is below what is no directory: a server
// says so of ENOTDIR.
func (c *Client) isFile(op, name string) bool {
	if op == "readdir" {
		if info, err := c.sftp.Stat(name); err == nil && !info.IsDir() {
			return true
		}
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) { // of "f/" it is f
		info, err := c.sftp.Stat(dir)
		if err == nil || dir == "/" || dir == "." {
			return err == nil && !info.IsDir()
		}
	}
}

// holds reports whether there is something in a directory.
func (c *Client) holds(dir string) bool {
	entries, err := c.list(dir)
	return err == nil && len(entries) > 0
}

// The longest name that file systems know, and the flag of a file system that is not written to.
const (
	nameMax      = 255
	readOnlyFlag = 1
)

// guess returns why an operation may have failed without a reason; 0 if nothing explains it.
func (c *Client) guess(op, name string) syscall.Errno {
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > nameMax {
			return syscall.ENAMETOOLONG
		}
	}
	info, err := c.sftp.Lstat(name)
	switch op {
	case "mkdir", "create":
		if err == nil {
			return syscall.EEXIST
		}
	case "remove":
		if err == nil && info.IsDir() && c.holds(name) {
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
	case "mkdir", "create", "write", "rename", "remove", "chmod":
		return c.full(path.Dir(strings.TrimRight(name, "/")))
	}
	return 0
}

// full reports whether nothing can be written to the file system of dir.
func (c *Client) full(dir string) syscall.Errno {
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
