package sandbox

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
)

// Files gives access to the files of a sandbox. It is for small files: use CopyTo and CopyFrom for
// large ones and for whole directories.
//
// Names are paths in the sandbox. A relative name starts at the main session's directory. "~", and
// a name that begins with "~/", start at the user's home. All is done with the rights of the
// sandbox's user; AsUser returns the files with another user's. All methods may be called from
// several goroutines.
//
// Sys of each FileInfo returns a *FileStat, with the owner, or nil if the sandbox does not know it.
//
// Reading, opening or writing a FIFO, a socket or a device fails with fs.ErrInvalid: run a program
// for that.
//
// Errors are those of package os: *fs.PathError, or *os.LinkError from Rename and Symlink, with the
// names as they were given. They wrap a syscall.Errno (ENOENT, EEXIST, EACCES, EISDIR, ENOTDIR,
// ENOTEMPTY, ENOSPC, and so on), so errors.Is finds fs.ErrNotExist, fs.ErrExist and
// fs.ErrPermission. The server of an SSHBox tells less: it says EACCES for EPERM, and perhaps for
// EROFS. If the server says only that something failed, the sandbox looks for the reason. If it
// finds none, the error has no Errno. Other errors are ErrClosed, ErrLost, ctx's error, and
// errors.ErrUnsupported where there is no way to the files.
//
// The end of ctx ends a call at once. ErrCut says that the program that serves the files in the
// sandbox has ended during the call, because a program there killed it. The next call has a new
// one. A call that only reads is made again, and returns ErrCut only if that happens twice. A call
// that changes something returns ErrCut, and the change may have been made or not.
type Files interface {
	// ReadFile returns a file's content. If the file has more than limit bytes, the error is a
	// *TooLargeError, and nothing of the file is transferred. If the file has no size (as in
	// /proc), ReadFile reads up to limit bytes, and returns that error if there are more. A limit
	// of 0 or less means DefaultReadLimit.
	ReadFile(ctx context.Context, name string, limit int64) ([]byte, error)

	// WriteFile writes a file as a whole. A program that opens name sees the old content or all of
	// the new, also when the call fails or the box dies in the middle. A new file gets the
	// permissions perm, whatever the umask. An existing file keeps its permissions, and its owner
	// if the user may give files away. In a LocalBox on Linux and in boxes with boxd, it keeps its
	// ACL and extended attributes too, as far as the user's rights and the file system allow. Over
	// a plain sshd they are lost. A symbolic link is followed.
	//
	// The new content is a new file, made beside the old one and moved to its place. So the user
	// must be allowed to write in the directory, and need not be for the file, unlike with
	// os.WriteFile. Hard links keep the old content. A file that is a mount of its own, such as a
	// container's /etc/hosts, is EBUSY. After an error the new file is removed; for that, WriteFile
	// may take some seconds after the end of ctx. The new file stays if the connection to the
	// sandbox is gone.
	WriteFile(ctx context.Context, name string, data []byte, perm fs.FileMode,
		opts ...WriteOption) error

	// Open opens a file for reading. ctx is for opening only. Close the file when done.
	Open(ctx context.Context, name string) (File, error)

	// Stat describes a file. It follows symbolic links.
	Stat(ctx context.Context, name string) (fs.FileInfo, error)

	// Lstat describes a file, or a symbolic link itself.
	Lstat(ctx context.Context, name string) (fs.FileInfo, error)

	// ReadDir returns the entries of a directory, sorted by name. Info of an entry does no I/O, and
	// does not follow symbolic links.
	ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error)

	// MkdirAll makes a directory, and those above it that are missing, each with the permissions
	// perm, whatever the umask. If the directory is there, it does nothing.
	MkdirAll(ctx context.Context, name string, perm fs.FileMode) error

	// Rename renames a file or directory. If to is a file, it is replaced; if to is a directory,
	// the error is fs.ErrExist.
	Rename(ctx context.Context, from, to string) error

	// Remove removes a file, a symbolic link or an empty directory.
	Remove(ctx context.Context, name string) error

	// RemoveAll removes name with all that is in it, but nothing that a symbolic link leads to. If
	// there is no such name, it does nothing.
	RemoveAll(ctx context.Context, name string) error

	// ReadLink returns the path that the symbolic link name holds. If name is no symbolic link, the
	// error is fs.ErrInvalid.
	ReadLink(ctx context.Context, name string) (string, error)

	// Symlink makes the symbolic link name, which holds target as it is given: no name in target is
	// expanded, and it need not exist. If there is a file of that name, the error is fs.ErrExist.
	Symlink(ctx context.Context, target, name string) error

	// Chmod sets a file's permissions, and the bits fs.ModeSetuid, fs.ModeSetgid and fs.ModeSticky.
	// It follows symbolic links. The file must be the user's, or the user root.
	Chmod(ctx context.Context, name string, mode fs.FileMode) error

	// Chown sets the numbers of a file's owner and group. -1 leaves one as it is. It follows
	// symbolic links. Only root may give files away; others may set a group that they are in. For
	// the rest the error is fs.ErrPermission.
	Chown(ctx context.Context, name string, uid, gid int) error

	// Attributes returns a file's extended attributes in the namespace "user" of Linux (xattr(7)),
	// by their names without "user.". These are the ones that programs may use as they like. The
	// map of a file without any is empty. Attributes follows symbolic links. The user must be
	// allowed to read the file.
	//
	// The error is errors.ErrUnsupported on a file system that keeps none, such as /proc, or a
	// tmpfs before Linux 6.6; over a plain sshd; on systems other than Linux; and for another
	// user's files in a LocalBox.
	Attributes(ctx context.Context, name string) (map[string][]byte, error)

	// SetAttributes sets extended attributes of a file, and removes those whose value is nil, if
	// they are there. The others stay as they are. After an error some may have been set. It
	// follows symbolic links. The user must be allowed to write to the file, which must be a
	// regular file or a directory: else the error is fs.ErrPermission. errors.ErrUnsupported is as
	// in Attributes.
	//
	// A name has 1 to 250 bytes, none of them NUL: else the error is fs.ErrInvalid. A value of more
	// than 64 KiB, and more than 1 MiB in all, is E2BIG. Many file systems take less: ext4 has room
	// for some 4 KiB of a file's attributes, and the error is then ENOSPC. WriteFile and Rename
	// keep attributes, copies do not, nor do images that a container is saved as.
	SetAttributes(ctx context.Context, name string, attributes map[string][]byte) error

	// Glob returns, sorted, the names that match pattern. Patterns are those of path.Match.
	// Directories that cannot be read match nothing.
	Glob(ctx context.Context, pattern string) ([]string, error)

	// Watch reports changes of a file, or of the entries of a directory, which must exist. It
	// reports each change after Watch has returned, by any program, in the order in which they
	// happened. It reports changes further below only with Recursive. A symbolic link is followed
	// once, at the beginning. The user must be allowed to read the directory, or the directory that
	// the file is in.
	//
	// WriteFile and copies are one change: FileWritten if there was a file, else FileCreated. Watch
	// does not report their temporary files, whose names begin with ".sandshell-".
	//
	// Range over the result once. The last thing that it yields is an error: ctx's; ErrClosed;
	// ErrLost; fs.ErrNotExist if the directory was moved, or was removed and no process is in it;
	// ErrCut if the program that watches in the sandbox was killed there. A file may be removed and
	// made again, or replaced, as WriteFile does. Watch goes on with the new file of that name, as
	// long as its directory is there. A break ends the watch too. If you do not range over the
	// result, end ctx: each watch takes an inotify instance, of which Linux gives a user 128 by
	// default. If none is left, the error is EMFILE.
	//
	// Changes wait for the loop. The box bounds how many (Linux keeps 16384); FileOverflow stands
	// for those that were not kept. A connection that is cut and made again loses none. Linux does
	// not report what is written through mmap, or what other machines change in a network file
	// system.
	//
	// Watch needs inotify. Over a plain sshd, which cannot offer inotify, and on systems other than
	// Linux, the error is errors.ErrUnsupported.
	Watch(ctx context.Context, name string,
		opts ...WatchOption) (iter.Seq2[FileEvent, error], error)

	// FS returns a view of the directory dir, for what takes an io/fs. ctx governs its calls: the
	// view lives as long as ctx. It also has ReadDir, Stat, and ReadFile with the default limit.
	// dir is resolved once: a relative one stays where it is when the session changes its
	// directory.
	FS(ctx context.Context, dir string) fs.FS

	// AsUser returns the same files with the rights of another user. name has the form of the
	// option User. "~" is that user's home, and new files are that user's. AsUser does no I/O. The
	// methods of the result return the errors of the option User, in a *fs.PathError: for other
	// users than the sandbox's own the sandbox must run as root. The result is valid as long as the
	// sandbox. For the last 16 users the sandbox keeps a file server running, where it has one.
	AsUser(name string) Files
}

// A LinkReader is a Files that tells where symbolic links lead. Every Files is one.
type LinkReader interface {
	// ReadLink returns the path that the symbolic link name holds: see Files.
	ReadLink(ctx context.Context, name string) (string, error)
}

// A FileStat is what Sys of a FileInfo from Files returns. [ReadAccounts] finds the names.
type FileStat struct {
	UID, GID int // the numbers of the owner and the group
}

// A File is an open file of a sandbox. Its methods may be called from several goroutines; Read and
// Seek share one offset. After the sandbox's Close they return ErrClosed. If the program that
// serves the files in the sandbox ends, they return ErrCut, and the file must be opened again.
type File interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer

	// Stat describes the file: see Files.Stat.
	Stat() (fs.FileInfo, error)
}

// DefaultReadLimit is what a limit of 0 or less means to ReadFile: 16 MiB.
const DefaultReadLimit = 16 << 20

// A TooLargeError says that a file holds more than ReadFile was to read.
type TooLargeError struct {
	Name  string
	Size  int64 // in bytes; -1 if the file has no size
	Limit int64 // in bytes
}

// Error implements error.
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

// WriteOptions are the options of one WriteFile. Implementations of Files need them.
type WriteOptions struct {
	Parents bool // create the missing directories above the file
}

// Parents makes WriteFile create the missing directories above the file, as MkdirAll with 0o755
// does.
func Parents() WriteOption { return func(o *WriteOptions) { o.Parents = true } }

var _ File = (*os.File)(nil)
