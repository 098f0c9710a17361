package hostapi

import (
	"context"
	"fmt"
)

// A Keeper is a shellbox.Host whose programs belong to the host, not to the connection. They run on
// after Detach and Close, and after the end of this program, and another program can attach to
// them. The processes that a Keeper's Start returns are KeptProcesses.
type Keeper interface {
	// Kept returns the processes that run on the host, and those that have ended and have not been
	// closed.
	Kept(ctx context.Context) ([]Kept, error)
	// Detach makes the following Close leave everything running. If the host would end by itself
	// nevertheless, Detach changes nothing and returns an error that says so. Detach must return at
	// once: the Box holds a lock during the call.
	Detach() error
}

// A KeptProcess is a shellbox.Process of a Keeper.
type KeptProcess interface {
	Process
	// SetNote stores a text with the process on the host, in place of the previous one.
	SetNote(note string) error
	// Detach releases the process, as Close does, but leaves the program running. After Close,
	// Detach does nothing, and after Detach, Close does nothing.
	Detach()
	// HandOver does what Detach does, and returns when the host has all that was written to the
	// inputs, the size and the note, also if the connection to the host is cut meanwhile. An error
	// says that ctx has ended first. If the host is lost, HandOver returns nil at once.
	HandOver(ctx context.Context) error
	// Close is Close of shellbox.Process.
	Close() error
}

// A Kept is a process that another program has started.
type Kept struct {
	Process    KeptProcess // a shellbox.Process
	Ended      bool        // it has ended, so its id may be another process's
	Note       string      // the text of the last SetNote
	Rows, Cols int         // of its terminal; 0 if it has none
	Backlog    int64       // how many bytes of its output can be read already
	// Skipped is how many bytes before those are no longer kept. If bytes of the standard error are
	// not, its first Read returns a SkippedError.
	Skipped int64
}

// A Forgetter is a KeptProcess whose Keeper keeps the output of a Program.Spool after Close.
type Forgetter interface {
	// Forget deletes that output. The program has ended.
	Forget(ctx context.Context) error
}

// A SkippedError is the error of a Read of a process's Stdout or Stderr where the next bytes are no
// longer kept. The next Read continues after them.
type SkippedError struct{ Bytes int64 }

func (e *SkippedError) Error() string {
	return fmt.Sprintf("%d bytes of the output are no longer kept", e.Bytes)
}
