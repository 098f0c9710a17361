package sandbox

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
)

// Files are the files of a sandbox, for small things: what is large, or whole directories, CopyTo
// and CopyFrom carry.
//
// Names are the box's. A relative one, and one that begins with ~/ or is ~, means what it means to
// CopyTo: it starts at the main session's directory, or at the user's home. What is done is done as
// the sandbox's user. All methods may be called from several goroutines.
//
// Files are regular files and directories. To read, open or write a FIFO, a socket or a device is
// an fs.ErrInvalid; programs (Run) can.
//
// Errors are those of package os: *fs.PathError (of Rename *os.LinkError) with the name as it was
// given, around a syscall.Errno, which is fs.ErrNotExist, fs.ErrExist or fs.ErrPermission where it
// means that: ENOENT, EEXIST, EACCES, EISDIR, ENOTDIR, ENOTEMPTY, ENOSPC, …. An SSHBox's server
// tells less: EACCES stands for EPERM and EROFS may be told as EACCES, what it only calls a failure
// is looked into, and what that does not explain is an error without Errno. Beside them there are
// ErrClosed, ErrLost, ctx's error, and errors.ErrUnsupported where there is no way to the files.
//
// The end of ctx ends a call at once. ErrCut says that what serves the files in the sandbox has
// ended during the call, because a program there killed it: the next call has a new one. What only
// reads is done again by itself; what changes something may have been done or not.
type Files interface {
	// ReadFile returns a file's content. A file of more than limit bytes is a *TooLargeError,
	// before anything of it is transferred; of one that has no size (as in /proc) limit bytes are
	// read, and one more is the error. A limit of 0 is DefaultReadLimit.
	ReadFile(ctx context.Context, name string, limit int64) ([]byte, error)

	// WriteFile writes a file as a whole: whoever opens name sees the old content or all of the
	// new, also when the call fails or the box dies in the middle. A new file gets the permissions
	// perm (whatever the umask); one that is there keeps its own, and its owner where the user may
	// give it away. Its ACL and extended attributes are kept in a LocalBox on Linux, and lost
	// elsewhere. A symbolic link is followed.
	//
	// The new content is a new file, made beside the old one and moved to its place: the user must
	// be allowed to write in the directory, and need not be for the file (os.WriteFile is the other
	// way round); hard links keep the old content; and a file that is a mount of its own, as a
	// container's /etc/hosts, is EBUSY. After an error the new file is removed, for which an ended
	// ctx waits at most some seconds; it stays if the way to the sandbox is gone.
	WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode,
		opts ...WriteOption) error

	// Open opens a file for reading. ctx is for opening; the file's calls go on until its Close,
	// which each file needs.
	Open(ctx context.Context, name string) (File, error)

	// of what a symbolic link leads to
	Stat(ctx context.Context, name string) (fs.FileInfo, error)
	Lstat(ctx context.Context, name string) (fs.FileInfo, error)     // of the link itself
	ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) // sorted by name

	// MkdirAll makes a directory, and those above it that are missing, each with the permissions
	// perm (whatever the umask). It does nothing where there is the directory.
	MkdirAll(ctx context.Context, name string, perm fs.FileMode) error

	// replaces a file that is there; of a directory it is an fs.ErrExist
	Rename(ctx context.Context, from, to string) error
	// a file, a link or an empty directory
	Remove(ctx context.Context, name string) error
	// with all that is in it, but nothing that a link leads to; does nothing where there is none
	RemoveAll(ctx context.Context, name string) error
	// as path.Match has patterns; sorted; unreadable directories match nothing
	Glob(ctx context.Context, pattern string) ([]string, error)

	// Watch tells of changes of a directory's entries, or of a file, which must be there. What
	// changes after Watch has returned is told, in the order in which it happened, whoever changes
	// it. What is below the directory's own directories is not. A symbolic link is followed once,
	// at the beginning. The user must be allowed to read the directory, for a file that in which it
	// is.
	//
	// WriteFile and copies are told as one change: Written where a file was there, else Created.
	// The temporary files by which they work, whose names begin with ".sandshell-", are not told.
	//
	// The loop over what it returns runs once. It ends with an error, the last thing that it gives:
	// ctx's; ErrClosed; ErrLost; fs.ErrNotExist when the directory was removed, if no process is in
	// it any more, or moved; ErrCut when what watches in the sandbox was killed there. A file may
	// be removed and made again, or replaced, as WriteFile does: it is the one of that name that is
	// watched, as long as its directory is there. A break ends it too. Who does not begin the loop
	// ends ctx: each watch takes one of the inotify instances that Linux gives a user, 128 by
	// default; beyond them it is EMFILE.
	//
	// Changes wait for the loop: how many, the box limits (Linux keeps 16384). Beyond that there is
	// an Overflow in their place. A connection that is cut and made anew loses none. What is
	// written by way of mmap, and what others change in a network's file system, Linux does not
	// tell.
	//
	// It needs inotify: over a plain sshd, which has no way to it, and on systems other than Linux
	// it is errors.ErrUnsupported.
	Watch(ctx context.Context, name string) (iter.Seq2[FileEvent, error], error)

	// FS is a view of the directory dir, for what takes an io/fs; it lives as long as ctx, which
	// governs its calls. It has ReadDir, Stat and ReadFile (with the default limit) too. dir is
	// resolved once: a relative one stays where it is when the session changes its directory.
	FS(ctx context.Context, dir string) fs.FS
}

// A LinkReader is a Files that tells where symbolic links lead. Those of shellbox's boxes, which
// all boxes of this module are, do.
type LinkReader interface {
	// ReadLink returns what the symbolic link name holds. What is none is an fs.ErrInvalid.
	ReadLink(ctx context.Context, name string) (string, error)
}

// A File is an open file of a box. Its calls may be made from several goroutines; Read and Seek
// share one offset. After its sandbox's Close they return ErrClosed. What serves the files in the
// sandbox has it open: when that ends, they return ErrCut, and the file must be opened again.
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
		return fmt.Sprintf("read %s: more than %d bytes: raise the limit, or use Open or CopyFrom",
			e.Name, e.Limit)
	}
	return fmt.Sprintf("read %s: %d bytes, more than %d: raise the limit, or use Open or CopyFrom",
		e.Name, e.Size, e.Limit)
}

// A WriteOption changes what WriteFile does.
type WriteOption func(*WriteOptions)

// WriteOptions are what the options of a WriteFile come to; for those who implement Files.
type WriteOptions struct {
	Parents bool
}

// Parents makes the directories that are missing above the file, as MkdirAll with 0o755.
func Parents() WriteOption { return func(o *WriteOptions) { o.Parents = true } }

var _ File = (*os.File)(nil)
