package shellbox

import (
	"context"
	"io"
	"io/fs"

	"github.com/sandshell/sandshell/sandbox"
)

// A FileHost is a Host that gives access to its files. On any other Host the Box reaches them by a
// shell and the usual tools, which takes longer.
type FileHost interface {
	// OpenFiles makes a way to the files. The Box calls it when it first needs them, and again when
	// the FileClient that it has is of no more use. ctx governs the opening only. The Box does
	// without after errors.ErrUnsupported.
	OpenFiles(ctx context.Context) (FileClient, error)
}

// A FileClient reaches a host's files, with the rights of the host's user. Its calls may be made
// from several goroutines, and block: the Box makes them in goroutines of its own, lets go of one
// whose context has ended, and frees it by Close if nobody else needs the FileClient.
//
// Names are absolute. Errors are those of package os: with a syscall.Errno where there is one.
// sandbox.ErrCut says that the way to the files has ended, and that a new one may be made.
type FileClient interface {
	// Home returns the directory that ~ stands for.
	Home() (string, error)

	// Open opens a regular file for reading; what is none is fs.ErrInvalid, a directory EISDIR.
	Open(name string) (sandbox.File, error)

	// Create makes a file that was not there, which only its owner may read and write. Writes are
	// of any size.
	Create(name string) (io.WriteCloser, error)

	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.FileInfo, error) // in any order; of links themselves
	ReadLink(name string) (string, error)
	Mkdir(name string) error
	Chmod(name string, mode fs.FileMode) error // with setuid, setgid and sticky

	// Chown gives a file the owner and the group of another, whose Stat like is.
	Chown(name string, like fs.FileInfo) error
	Rename(from, to string) error // replaces a file
	Remove(name string) error     // a file, a link or an empty directory

	// Err returns why the FileClient is of no more use; nil if it is of use.
	Err() error

	// Close ends the way to the files, and with it the calls and files that are under way and open.
	// It returns when nothing is left of it.
	Close() error
}

// A Replacer is a FileClient that keeps more of a file that WriteFile replaces than owner and mode.
type Replacer interface {
	FileClient
	// Replace gives the file from the ACL and the extended attributes of the file to, as far as the
	// file system and the user's rights allow, and renames it to that.
	Replace(from, to string) error
}
