package place

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// The errors of a Place that a service tells apart, with errors.Is. Package service has the same
// errors under the same names.
var (
	// ErrConflict says that an ID is taken, or that a note is not made from the newest one.
	ErrConflict = errors.New("conflict")
	// ErrNotFound says that the box is gone.
	ErrNotFound = errors.New("not found")
)

// A Place holds the boxes of a service, and is the service's only memory. Its methods may be called
// concurrently, and several processes may use the same boxes at once.
//
// A handle is the Place's own name for a box. It is never given to another box. If the box of a
// handle is gone, the error of a method is ErrNotFound.
type Place interface {
	// Open is called once, before any other method. service is the Name of the service; a Place
	// keeps the boxes of different services apart by it.
	Open(service string, log *slog.Logger) error

	// Create makes a box, starts it and attaches to it. It returns the box and its handle. If
	// Create fails, it leaves no box. The box counts as being started until Note is called. If
	// another box has the ID, the error is ErrConflict.
	Create(ctx context.Context, r Request) (Attached, string, error)

	// Name gives an ID to a box of a pool. That is the last step of the box's start, after Note. If
	// another box has the ID, the error is ErrConflict.
	Name(ctx context.Context, handle, id string) error

	// Note replaces the note of a box. If n is not made from the newest note (see Note.Version),
	// the error is ErrConflict.
	Note(ctx context.Context, handle string, n Note) error

	// List returns the box of an ID, or none. If id is "", it returns all boxes of the service,
	// those of pools included.
	List(ctx context.Context, id string) ([]*Record, error)

	// Attach connects to a running box, beside the processes that are connected already. Close and
	// Detach of the result leave the box running.
	Attach(ctx context.Context, handle string) (Attached, error)

	// Pause stops the programs of a box. Pausing a paused box does nothing. If boxes cannot be
	// paused here, the error is errors.ErrUnsupported and says why.
	Pause(ctx context.Context, handle string) error

	// Resume continues the programs of a paused box. If they have ended, it starts the box again,
	// from checkpoint if that is not "". It returns what that has brought back. Resuming a running
	// box does nothing.
	Resume(ctx context.Context, handle, checkpoint string) (Kept, error)

	// Suspend writes the memory of a box to disk, and frees it. If boxes cannot be suspended here,
	// the error is errors.ErrUnsupported and says why.
	Suspend(ctx context.Context, handle string) (checkpoint string, err error)

	// Snapshot makes an image of the files of a box. If no images can be made here, the error is
	// errors.ErrUnsupported and says why.
	Snapshot(ctx context.Context, handle string) (image string, err error)

	// Fork makes a box for each Request, all or none. It does what Create does, but each box has
	// the files of from, to which this process is connected, and its sessions under their ids;
	// Request.Config.Image does not count. If the boxes would lack something that from has, the
	// error is a *sandbox.IncompleteError, unless accept has the kind of the loss. What the boxes
	// share, such as an image, goes with the last of them, and Tidy removes it if this process was
	// killed. If boxes cannot be copied here, the error is errors.ErrUnsupported and says why.
	Fork(ctx context.Context, from Attached, requests []Request, accept sandbox.LossKind) (
		[]Created, error)

	// Remove removes a box with all that is kept with it, and returns when it is gone. Removing a
	// box that is gone does nothing.
	Remove(ctx context.Context, handle string) error

	// Usage returns what a box uses. If that is not known here, the error is errors.ErrUnsupported
	// and says why.
	Usage(ctx context.Context, handle string) (*Use, error)

	// Watch reports changes until ctx ends. Then it closes the channel. An Event without an ID is
	// about the watch itself. If its Status is Running, each change from then on is reported. If it
	// is Unknown, changes are missed until the next one that is Running; the changes that Watch
	// then finds are reported late.
	Watch(ctx context.Context) (<-chan Event, error)

	// Tidy removes what is still kept with boxes that are gone.
	Tidy(ctx context.Context) error

	// Close releases what the Place holds in this process. The boxes stay.
	Close() error
}

var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ValidID reports whether a box can have an ID: a letter or digit, and up to 127 more letters,
// digits, "_", "." and "-".
func ValidID(id string) bool { return validID.MatchString(id) }

// A Request says which box a Place is to make.
type Request struct {
	// ID is the box's. If it is empty, the box is for a pool, and Name gives it an ID later.
	ID string
	// Spec is the ID of the box's spec.
	Spec string
	// Config is what the box is made of, its spec's Env included. Name, Keep and Docker are not
	// set: they are the Place's.
	Config sshbox.Config
	// PausedBy names the field of the spec's Lifecycle because of which the service will pause the
	// box: "Idle", "Session" or "MaxRunning". It is empty if the service will not. A Place that
	// cannot pause boxes refuses a Request that has it.
	PausedBy string
	// PauseAtEnd says that the box's Note will have it. A Place that cannot pause boxes refuses
	// such a Request: see Note.PauseAtEnd.
	PauseAtEnd bool
	// Egress says that the service will attach package egress to the box, by Listen. Then
	// Config.Network is "none". A Place whose boxes have routes nevertheless, or cannot Listen,
	// refuses such a Request. One whose boxes have sshbox.Config.Outward sets it.
	Egress  bool
	Created time.Time
}

// An Attached is a box that this process is connected to. *sshbox.DockerSSHBox is one.
type Attached interface {
	sandbox.Sandbox
	plugin.Installer
	plugin.Environment
	// Activity reports whether anything goes on in the box, and since when that is so.
	Activity() (busy bool, since time.Time)
	// Lost returns why the connection is lost; nil if it is not.
	Lost(ctx context.Context) error
	// Detach closes the connection. The box goes on.
	Detach() error
}

// A Created is a box that Fork has made.
type Created struct {
	Box    Attached
	Handle string
	// Kept is KeptAll if what runs in the box was copied too. Default: KeptShells.
	Kept Kept
}

// A Record is what a Place knows about a box.
type Record struct {
	Handle  string
	ID      string // empty while the box is in a pool
	Spec    string // the ID of its spec
	Status  Status
	Detail  string // why it has that status, for people; may be empty
	Ended   bool   // it is Paused because its programs have ended
	Created time.Time
	// Published maps a port of the box to the port of 127.0.0.1 on the engine's machine.
	Published map[int]int
	Note      *Note // nil while the box is being started
	Orphan    bool  // the process that made it is certainly gone
}

// A Note holds what changes about a box. Nothing in it is secret.
type Note struct {
	Owner   string
	Created time.Time // when the box got its ID
	Started time.Time // or was last resumed
	Used    time.Time // a process that uses the box renews it from time to time
	Paused  time.Time // zero while the box runs
	// Generation counts how often the box's programs were started anew. Session keys depend on it.
	Generation int
	Dir        string // where the box's sessions start
	Kept       Kept
	Checkpoint string // what Suspend returned; empty if the box is not suspended
	// Metadata is what the box's user has written on it. It does not change.
	Metadata map[string]string
	// Egress are the rules of what the box may reach. It does not change. It is nil if the service
	// does not serve a way out. An empty list is not nil.
	Egress []string
	// Hosts narrow what Egress allows to these hosts. It is nil if they do not. An empty list,
	// which allows nothing, is not nil.
	Hosts []string
	// Ends is when the service removes the box, or pauses it if PauseAtEnd is set. It is zero if
	// the box has no end.
	Ends time.Time
	// PauseAtEnd does not change. A Place that cannot pause boxes refuses a Note that has it.
	PauseAtEnd bool
	// WakeFor is for how long the use of the paused box resumes it. It is zero if it does not. It
	// does not change.
	WakeFor time.Duration
	// Version is the Place's number of a note that List has returned. Place.Note gets the Version
	// of the note that the new one is made from; 0 means that there is none yet.
	Version int64
}

// UnknownVersion is the Version of a note that was not read from the Place. Any note of the Place
// is newer.
const UnknownVersion = -1

// An Event says that a box has come, gone or changed.
type Event struct {
	ID     string // empty if the Event is about the watch itself: see Place.Watch
	Status Status // Missing if the box is gone
	Detail string
	Time   time.Time
}
