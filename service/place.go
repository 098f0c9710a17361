package service

import (
	"context"
	"log/slog"
	"time"

	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
)

// A Place is where the boxes of a service are, and its only memory. Docker makes one of a Docker
// engine, and package service/pods one of a Kubernetes cluster. Its methods may be called from
// several goroutines, and several processes may have the same place at once.
//
// A box's handle is the place's own name for it. It is never given to another box. A method that is
// given the handle of a box that is gone returns ErrNotFound.
type Place interface {
	// Open is called first, by New. service is the Name of the service: places keep the boxes of
	// several apart by it.
	Open(service string, log *slog.Logger) error
	// Create makes a box, starts it and attaches to it. If it fails, it leaves no box. The box
	// counts as being started until Note is called. An ID that is taken is ErrConflict. A box
	// without an ID is in a pool.
	Create(ctx context.Context, o Order) (Attached, string, error)
	// Name gives an ID to a box in a pool: the last step of its start, after Note. An ID that is
	// taken is ErrConflict.
	Name(ctx context.Context, handle, id string) error
	// Note replaces what is kept with a box. A note that was made of another than the newest one
	// (Note.Version) is ErrConflict.
	Note(ctx context.Context, handle string, n Note) error
	// List returns the box of an ID, if there is one; all boxes of the service for "".
	List(ctx context.Context, id string) ([]*Record, error)
	// Attach connects to a box that runs. A process that is connected to it loses it.
	Attach(ctx context.Context, handle string) (Attached, error)
	// Pause stops what runs in the box, Resume has it go on; a box whose programs have ended it
	// starts again, of checkpoint if that is not "", and says what that has brought back. Both do
	// nothing if there is nothing to do. Pause is errors.ErrUnsupported, with the reason, where
	// boxes cannot be paused.
	Pause(ctx context.Context, handle string) error
	Resume(ctx context.Context, handle, checkpoint string) (Kept, error)
	// Suspend writes the box's memory to disk and frees it. It is errors.ErrUnsupported, with the
	// reason, where that cannot be.
	Suspend(ctx context.Context, handle string) (checkpoint string, err error)
	// Snapshot makes an image of the box's files. It is errors.ErrUnsupported, with the reason,
	// where that cannot be.
	Snapshot(ctx context.Context, handle string) (image string, err error)
	// Remove removes the box with all that is kept with it, and returns when it is gone.
	Remove(ctx context.Context, handle string) error
	// Usage returns what the box uses; it is errors.ErrUnsupported, with the reason, where nobody
	// knows.
	Usage(ctx context.Context, handle string) (*Use, error)
	// Watch tells of changes until ctx ends; then it closes the channel.
	Watch(ctx context.Context) (<-chan Event, error)
	// Tidy removes what is kept with boxes that are gone.
	Tidy(ctx context.Context) error
	// Close lets go of the place.
	Close() error
}

// An Order says which box a Place is to make.
type Order struct {
	ID      string // "": the box is for a pool
	Spec    *Spec
	Created time.Time
}

// Attached is a box that this process is connected to. A *sshbox.DockerSSHBox is one.
type Attached interface {
	sandbox.Sandbox
	plugin.Installer
	plugin.Environment
	Activity() (busy bool, since time.Time)
	Lost(ctx context.Context) error
	Detach() error
}

// A Record is what a Place knows about a box.
type Record struct {
	Handle    string
	ID        string // "": it is in a pool
	Spec      string
	Status    Status
	Detail    string
	Ended     bool // it is Paused because its programs have ended
	Created   time.Time
	Published map[int]int // see Info
	Note      *Note       // nil: it is still being started
	Orphan    bool        // the process that made it is certainly gone
}

// A Note is what changes about a box. Nothing in it is secret.
type Note struct {
	Owner      string
	Created    time.Time // when it got its ID
	Started    time.Time // or was last resumed
	Used       time.Time // a process that has the box in use says so from time to time
	Paused     time.Time // zero: it runs
	Generation int       // how often its programs were started anew: session keys depend on it
	Dir        string
	Kept       Kept
	Checkpoint string // of Suspend; "": none
	Version    int64  // of a note that was read: the place's, for Note. 0: there is none before it
}

// unknownVersion is that of a note that is not the place's: each is newer.
const unknownVersion = -1
