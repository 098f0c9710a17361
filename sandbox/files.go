package sandbox

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Files are the files of a sandbox, for small things: what is large, or whole directories, CopyTo and CopyFrom carry.
//
// Names are the box's. A relative one, and one that begins with ~, means what it means to CopyTo: it starts at the main session's directory, or at
// the user's home. Errors are those of package os: *fs.PathError (for Rename *os.LinkError) around fs.ErrNotExist, fs.ErrExist, fs.ErrPermission or a
// syscall.Errno such as EISDIR, ENOTDIR, ENOTEMPTY, ENOSPC; ErrClosed, ErrLost and ErrCut as from the rest of the box. All methods may be called from several goroutines.
type Files interface {
	// ReadFile returns a file's content. A file of more than limit bytes is a *TooLargeError, before anything of it is transferred; of one that has no
	// size (a FIFO, a file of /proc) limit bytes are read, and one more is the error. A limit of 0 is DefaultReadLimit.
	ReadFile(ctx context.Context, name string, limit int64) ([]byte, error)

	// WriteFile writes a file as a whole: whoever opens name sees the old content or all of the new, also when the call fails or the box dies in the middle. A new
	// file gets the permissions perm (whatever the umask); one that is there keeps its own, and its owner where the box may keep it. A symbolic link is followed.
	WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode, opts ...WriteOption) error

	// Open opens a file for reading. ctx is for opening; the file's calls go on until its Close.
	Open(ctx context.Context, name string) (File, error)

	Stat(ctx context.Context, name string) (fs.FileInfo, error)        // of what a symbolic link leads to
	Lstat(ctx context.Context, name string) (fs.FileInfo, error)       // of the link itself
	ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error)   // sorted by name
	MkdirAll(ctx context.Context, name string, perm fs.FileMode) error // nothing where there is the directory
	Rename(ctx context.Context, from, to string) error                 // replaces a file that is there, as rename(2)
	Remove(ctx context.Context, name string) error                     // a file or an empty directory
	RemoveAll(ctx context.Context, name string) error                  // with all that is in it; nothing where there is none
	Glob(ctx context.Context, pattern string) ([]string, error)        // as path.Match has patterns; sorted; unreadable directories match nothing

	// FS is a view of the directory dir, for what takes an io/fs; it lives as long as ctx. It has ReadDir, Stat and ReadFile (with the default limit) too.
	FS(ctx context.Context, dir string) fs.FS
}

// A File is an open file of a box.
type File interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	Stat() (fs.FileInfo, error)
}

// DefaultReadLimit is the most that ReadFile reads if it is not told otherwise: 16 MiB.
const DefaultReadLimit = 16 << 20

// A TooLargeError says that a file holds more than ReadFile was to read.
type TooLargeError struct {
	Name  string
	Size  int64 // in bytes; -1 where a file has none
	Limit int64
}

func (e *TooLargeError) Error() string {
	if e.Size < 0 {
		return fmt.Sprintf("read %s: more than %d bytes: raise the limit, or use Open or CopyFrom", e.Name, e.Limit)
	}
	return fmt.Sprintf("read %s: %d bytes, more than %d: raise the limit, or use Open or CopyFrom", e.Name, e.Size, e.Limit)
}

// A WriteOption changes what WriteFile does.
type WriteOption func(*WriteOptions)

// WriteOptions are what the options of a WriteFile come to; for those who implement Files.
type WriteOptions struct {
	Parents bool
}

// Parents makes the directories that are missing above the file, as MkdirAll with 0o777 and the box's umask.
func Parents() WriteOption { return func(o *WriteOptions) { o.Parents = true } }

var _ File = (*os.File)(nil)
