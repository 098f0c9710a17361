package shellbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sandshell/sandshell/internal/archive"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/files"
)

// A FileHost is a Host that gives access to its files. On any other Host the Box reaches them with
// a shell and the usual tools, a program or two for each call.
type FileHost interface {
	// OpenFiles opens the files with the rights of the user, whom user names as Program.User does;
	// "" is the host's own. The Box calls it when it first needs the files, and again when the
	// FileClient that it has is no longer usable. ctx governs the opening only. After
	// errors.ErrUnsupported the Box uses a shell of that user.
	OpenFiles(ctx context.Context, user string) (FileClient, error)
}

// A FileClient reaches a host's files with the rights of one user. Its methods may be called from
// several goroutines, and may block. The Box calls them in goroutines of its own. It abandons a
// call whose context has ended, and ends that call by Close once nobody else uses the FileClient.
//
// Names are absolute. Errors are those of package os, with a syscall.Errno where there is one.
// sandbox.ErrCut says that the FileClient has lost its connection and that OpenFiles may make a new
// one.
type FileClient interface {
	// Home returns the directory that ~ stands for.
	Home() (string, error)

	// Open opens a regular file for reading. The error is EISDIR for a directory, and fs.ErrInvalid
	// for any other file that is not regular.
	Open(name string) (sandbox.File, error)

	// Create creates a file that only its owner may read and write. The error is fs.ErrExist if
	// there is such a file. Writes are of any size.
	Create(name string) (io.WriteCloser, error)

	// Stat describes a file. It follows symbolic links.
	Stat(name string) (fs.FileInfo, error)

	// Lstat describes a file, or a symbolic link itself.
	Lstat(name string) (fs.FileInfo, error)

	// ReadDir describes the entries of a directory, in any order. It follows no symbolic links.
	ReadDir(name string) ([]fs.FileInfo, error)

	// ReadLink returns the path that the symbolic link name holds.
	ReadLink(name string) (string, error)

	// Mkdir makes a directory. The one above it must exist.
	Mkdir(name string) error

	// Chmod sets a file's permissions, and its setuid, setgid and sticky bits. It follows symbolic
	// links.
	Chmod(name string, mode fs.FileMode) error

	// Chown gives the file name the owner and the group of like, which Stat has returned.
	Chown(name string, like fs.FileInfo) error

	// Rename renames a file or directory. If to is a file, it is replaced.
	Rename(from, to string) error

	// Remove removes a file, a symbolic link or an empty directory.
	Remove(name string) error

	// Err returns why the FileClient is no longer usable; nil if it is usable.
	Err() error

	// Close ends the calls under way and closes open files. It returns when everything is released.
	Close() error
}

// A FileChanger is a FileClient that knows owners and makes symbolic links. With any other, Chown
// and Symlink of Files return errors.ErrUnsupported, and Sys of a FileInfo returns nil.
type FileChanger interface {
	FileClient

	// Symlink makes the symbolic link name, which holds target. If there is a file of that name,
	// the error is fs.ErrExist.
	Symlink(target, name string) error

	// SetOwner sets the numbers of a file's owner and group; -1 leaves one as it is. It follows
	// symbolic links.
	SetOwner(name string, uid, gid int) error

	// OwnerOf returns the numbers of the owner and the group from a FileInfo that the FileClient,
	// or a file that it has opened, has returned. It does no I/O. ok is false if they are unknown.
	OwnerOf(info fs.FileInfo) (uid, gid int, ok bool)
}

// A FileWatcher is a FileClient that reports changes. With any other, Files.Watch returns
// errors.ErrUnsupported.
type FileWatcher interface {
	FileClient
	// Watch begins to watch a file or a directory as sandbox.Files.Watch does. Changes after its
	// return are reported. ctx governs the beginning only. The FileClient may be closed before the
	// FileWatch.
	Watch(ctx context.Context, name string) (FileWatch, error)
}

// A TreeWatcher is a FileWatcher that also watches all directories below one, as sandbox.Recursive
// says. With any other, Files.Watch with that option returns errors.ErrUnsupported.
type TreeWatcher interface {
	FileWatcher
	// WatchTree begins to watch a directory and all directories below it, as Watch does for one.
	WatchTree(ctx context.Context, name string) (FileWatch, error)
}

// A FileWatch watches a file or a directory. The Box closes it before the host.
type FileWatch interface {
	// Next waits for events. It is not called concurrently, nor after an error. The error is
	// fs.ErrNotExist if the watched file no longer exists, and sandbox.ErrCut if the connection is
	// lost.
	Next() ([]sandbox.FileEvent, error)
	// Close makes Next return. It is called once.
	Close() error
}

// Files implements sandbox.Sandbox. Files itself does no I/O.
func (b *Box) Files() sandbox.Files { return b.files }

// CopyTo implements sandbox.Sandbox. The copy is made beside its destination, and moved there when
// it is complete. If a directory is copied into one of the same name, it is moved file by file, and
// other files there stay. The files belong to the sandbox's user. Sockets and devices are left out.
// CopyTo needs tar in the sandbox, unless the host is a [Copier].
func (b *Box) CopyTo(ctx context.Context, hostPath, boxPath string) error {
	return b.files.CopyTo(ctx, hostPath, boxPath)
}

// CopyFrom implements sandbox.Sandbox. The copy is made beside its destination, and moved there
// when it is complete. If a directory is copied into one of the same name, it is moved file by
// file, and other files there stay. Sockets, devices and FIFOs are left out. CopyFrom needs tar in
// the sandbox, unless the host is a [Copier].
func (b *Box) CopyFrom(ctx context.Context, boxPath, hostPath string) error {
	return b.files.CopyFrom(ctx, boxPath, hostPath)
}

// newFiles returns the files of the box.
func (b *Box) newFiles() *files.Files {
	return files.New(files.Box{
		Name:   b.String(),
		Call:   b.beginCall,
		Run:    b.runInCall,
		Path:   b.filePath,
		Closed: b.isClosed,
		Lost:   b.lostOr,
		Open:   func(ctx context.Context) (files.Client, error) { return b.openFiles(ctx, b.user) },
		Watch:  b.watchFiles,
		Copier: b.copier,
		AsUser: b.filesOf,
	})
}

// filesOf returns what the files of another user need of the box.
func (b *Box) filesOf(name string) files.Box {
	return files.Box{
		Name: b.String(),
		Call: b.beginCall,
		Run: func(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
			as := *cmd
			as.User = name
			return b.runInCall(ctx, &as)
		},
		Path:   b.filePath,
		Closed: b.isClosed,
		Lost:   b.lostOr,
		Open: func(ctx context.Context) (files.Client, error) {
			user, err := b.userFor(name)
			if err != nil {
				return nil, err
			}
			return b.openFiles(ctx, user)
		},
		Watch:  b.watchFiles,
		Copier: func() files.Copier { return nil },
		AsUser: b.filesOf,
	}
}

// openFiles opens the host's own access to the files of a user.
func (b *Box) openFiles(ctx context.Context, user string) (files.Client, error) {
	host, ok := b.host.(FileHost)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return host.OpenFiles(ctx, user)
}

func (b *Box) watchFiles(ctx context.Context, c files.Client, path string,
	o sandbox.WatchOptions) (files.Watch, error) {
	watcher, ok := c.(FileWatcher)
	tree, below := c.(TreeWatcher)
	switch {
	case o.Recursive && below:
		w, err := tree.WatchTree(ctx, path)
		if errors.Is(err, syscall.ENOTDIR) {
			err = fmt.Errorf("%w: Recursive watches a directory and what is below it", err)
		}
		return w, err
	case o.Recursive || !ok:
		return nil, fmt.Errorf("%w: %s cannot tell of changes of its files", errors.ErrUnsupported,
			b)
	}
	return watcher.Watch(ctx, path)
}

// copier returns the host's Copier, or nil. A Copier has the rights of the host's user, so a box of
// another user does not use it.
func (b *Box) copier() files.Copier {
	if c, ok := b.host.(Copier); ok && b.owner == nil {
		return c
	}
	return nil
}

// filePath returns the path of a file in the sandbox for the host. A path relative to the main
// session's directory becomes absolute. So does a path that begins with ~ if the box's environment
// sets HOME, which the host does not know.
func (b *Box) filePath(name string) (string, error) {
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%w: the sandbox's path %q is empty or has a NUL byte", fs.ErrInvalid,
			name)
	case path.IsAbs(name):
		return name, nil
	case name == "~" || strings.HasPrefix(name, "~/"):
		for _, kv := range slices.Backward(b.opts.Env) {
			if home, ok := strings.CutPrefix(kv, "HOME="); ok {
				return archive.ExpandHome(name, home), nil
			}
		}
		return name, nil
	}
	return b.session.Cwd() + "/" + name, nil
}
