// Package files is the implementation of sandbox.Files and of copies for a Box: with the host's own
// access to files where it has one, else with a shell and the usual tools.
package files

import (
	"context"
	"io"
	"io/fs"
	"sync"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// A Box is what this package needs of the sandbox whose files it reaches.
type Box struct {
	Name string // what errors call it

	// Call begins a call, which the box's Close waits for. The context ends with ctx, and with the
	// box. done ends the call.
	Call func(ctx context.Context) (_ context.Context, done func(), err error)

	// Run is Run of the sandbox, within a call.
	Run func(ctx context.Context, cmd *sandbox.Cmd) (int, error)

	// Path returns a caller's name of a file as an absolute path, or as one that begins with "~".
	Path func(name string) (string, error)

	// Closed reports whether the box's Close has begun.
	Closed func() bool

	// Lost returns why the host is gone, or err if it is there.
	Lost func(err error) error

	// Open opens the host's own access to files. The error is errors.ErrUnsupported if it has none.
	Open func(ctx context.Context) (Client, error)

	// Watch begins to watch files by a Client that Open has returned.
	Watch func(ctx context.Context, c Client, path string, o sandbox.WatchOptions) (Watch, error)

	// AsUser returns the same box with Run and Open for another user.
	AsUser func(name string) Box

	// Copier returns the host's own way to copy; nil: by sh and tar.
	Copier func() Copier
}

// A Client is a shellbox.FileClient.
type Client interface {
	Home() (string, error)
	Open(name string) (sandbox.File, error)
	Create(name string) (io.WriteCloser, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.FileInfo, error)
	ReadLink(name string) (string, error)
	Mkdir(name string) error
	Chmod(name string, mode fs.FileMode) error
	Chown(name string, like fs.FileInfo) error
	Rename(from, to string) error
	Remove(name string) error
	Err() error
	Close() error
}

// A Changer is a shellbox.FileChanger.
type Changer interface {
	Client
	Symlink(target, name string) error
	SetOwner(name string, uid, gid int) error
	OwnerOf(info fs.FileInfo) (uid, gid int, ok bool)
}

// A Watch is a shellbox.FileWatch.
type Watch interface {
	Next() ([]sandbox.FileEvent, error)
	Close() error
}

// A Copier is a shellbox.Copier.
type Copier interface {
	Unpack(ctx context.Context, path string, pack func(io.Writer) error) error
	Pack(ctx context.Context, path string, unpack func(io.Reader) error) error
}

// Files are the files of a Box.
type Files struct {
	box     Box
	clients *clients
	users   *users // that are not the box's own, shared by all Files of the box
	user    string // "": the box's own

	mu      sync.Mutex
	closed  bool                   // CloseWatches has been called
	watches map[*watch]func() bool // each function cancels the watch's context.AfterFunc
}

var (
	_ sandbox.Files            = (*Files)(nil)
	_ sandbox.LinkReader       = (*Files)(nil)
	_ hostapi.AttributesLister = (*Files)(nil)
)

// New returns the files of a box. It does no I/O.
func New(box Box) *Files { return newFiles(box, &users{files: map[string]*Files{}}, "") }

func newFiles(box Box, u *users, user string) *Files {
	return &Files{box: box, clients: newClients(), users: u, user: user,
		watches: map[*watch]func() bool{}}
}

// Close closes every client. It returns when no call is left.
func (f *Files) Close() { f.withUsers(func(f *Files) { f.clients.close() }) }

// Expand returns the absolute path that name, as a caller of op has given it, stands for.
func (f *Files) Expand(ctx context.Context, op, name string) (string, error) {
	return valueOf(ctx, f, call{op: op, name: name},
		func(_ context.Context, _ *sharedClient, path string) (string, error) {
			return path, nil
		})
}
