package sandbox

import (
	"context"
	"fmt"
	"time"
)

// A History saves the states of a directory of a sandbox, and brings them back: undo for files.
// Boxes of this module with boxd and LocalBoxes on Linux have it:
//
//	History(ctx context.Context, dir string, opts ...HistoryOption) (History, error)
//
// [As] finds it for any Sandbox. For others that method's error is errors.ErrUnsupported.
//
// What is saved: names, contents, holes, permissions, owners, times of modification, extended
// attributes with ACLs, symbolic links, hard links within the directory, FIFOs, empty directories.
// What is not: sockets, devices, other file systems that are mounted within the directory, and what
// the box's user may not read. Point.Skipped says where they are; Back leaves them alone. Names
// that begin with ".sandshell-" are this module's temporary files, and are ignored. Programs,
// shells and other directories are not saved at all.
//
// The states are kept in the sandbox, outside of the directory, and go with it, or by Forget. A
// content that several points share is kept once. There is no limit to all of them together.
// Programs of the box's user can damage them. They cannot make Back write elsewhere.
//
// A History holds nothing open. Its methods may be called concurrently, also on several Histories
// of one directory: they wait for each other. When ctx ends during a Save, there is no new point.
type History interface {
	// Save saves the directory as it is, as a new point. It reads the files whose ctime, mtime,
	// inode or size has changed since the last Save.
	//
	// Programs may change files during a Save, so a point need not be of one moment. A file that
	// changes while it is read is read again, up to three times.
	//
	// If the store's disk is full, the error is syscall.ENOSPC, and there is no new point.
	Save(ctx context.Context) (Point, error)

	// Points returns the points, oldest first.
	Points(ctx context.Context) ([]Point, error)

	// Forget removes points, and frees what only they have, but for what the directory had at the
	// last Save or Back. A file system that cannot free parts of a file (gVisor's) frees nothing.
	// The ids of other points stay. To keep the last ten points, Save and then forget those of
	// Points that are older. If there is no such point, the error is fs.ErrNotExist, and Forget
	// removes none.
	Forget(ctx context.Context, points ...Point) error

	// Changes returns how the directory differs from a point, of which only the ID counts, in the
	// order of the paths. If a file has been moved, it is removed and created. A directory whose
	// time alone has changed is left out. If there is no such point, the error is fs.ErrNotExist.
	Changes(ctx context.Context, p Point) ([]Change, error)

	// Back makes the directory as it was at a point, of which only the ID counts. First it saves
	// what is there, if that differs from the last point: saved is then that new point, and Back to
	// it undoes this Back. Otherwise saved is the zero Point.
	//
	// Back replaces a file by a new one, and does not write into it. Programs that have the file
	// open keep the old one. It does not replace or remove what has changed since it was saved,
	// because a program works on it, nor what cannot be saved. All else it brings back, and
	// the error is then a *LeftError that lists the rest.
	//
	// After any other error, the directory may be partly as it was. Nothing is lost: saved has the
	// rest. Call Back again.
	Back(ctx context.Context, p Point) (saved Point, err error)
}

// A Point is a state of a directory that a History has saved.
type Point struct {
	ID      int // from 1 on
	Time    time.Time
	Entries int   // how many files, directories, links and FIFOs it has
	Bytes   int64 // the sizes of its files together
	Added   int64 // by how many bytes the history has grown

	// Skipped is what could not be saved, at most 100 of them. Points leaves it out.
	Skipped      []Skipped
	SkippedCount int // how many there are
}

// A Skipped is a file that a History has left alone.
type Skipped struct {
	Path   string // in the directory
	Reason string
}

// A Change says how a file differs from a point.
type Change struct {
	// Op is FileCreated, FileWritten, FileRemoved or FileAttributes. A file in place of a
	// directory, or the other way round, is FileWritten.
	Op   FileOp
	Path string // in the directory; "." is the directory itself
}

// String returns the change as a line of text.
func (c Change) String() string { return fmt.Sprintf("%v %q", c.Op, c.Path) }

// A LeftError says what History.Back has left as it is. All else is as it was.
type LeftError struct {
	Left  []Skipped // at most 100
	Count int       // how many there are
}

// Error implements error.
func (e *LeftError) Error() string {
	if len(e.Left) == 0 {
		return fmt.Sprintf("went back, except for %d files", e.Count)
	}
	text := fmt.Sprintf("went back, except for %q: %s", e.Left[0].Path, e.Left[0].Reason)
	if e.Count > 1 {
		text += fmt.Sprintf(", and %d more", e.Count-1)
	}
	return text
}

// HistorySkipped is the greatest length of Point.Skipped and LeftError.Left.
const HistorySkipped = 100

// The defaults of HistoryLimits.
const (
	HistoryEntries = 500_000
	HistoryBytes   = 10 << 30
)

// HistoryOptions are what HistoryOptions set.
type HistoryOptions struct {
	Entries int
	Bytes   int64
}

// A HistoryOption is an option of the method History of a box.
type HistoryOption func(*HistoryOptions)

// HistoryLimits bounds the directory that a History saves: how many entries it has, and the sizes
// of its files together. Defaults, for 0: HistoryEntries and HistoryBytes. Save and Back return an
// error if the directory has more. It has to be less than 500 levels deep in any case.
func HistoryLimits(entries int, bytes int64) HistoryOption {
	return func(o *HistoryOptions) { o.Entries, o.Bytes = entries, bytes }
}

// NewHistoryOptions returns what the options set. Implementations of History need it.
func NewHistoryOptions(opts ...HistoryOption) HistoryOptions {
	var o HistoryOptions
	for _, set := range opts {
		if set != nil {
			set(&o)
		}
	}
	return o
}
