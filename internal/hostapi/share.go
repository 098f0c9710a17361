package hostapi

import (
	"context"
	"errors"
	"fmt"
)

// A Sharer is a Keeper whose programs may be used by several programs of this kind at once, each
// with a Host of its own. One of them at a time has the turn of a process. It keeps the turn until
// another one wants it.
type Sharer interface {
	Keeper
	// Shared reports whether other Hosts may be connected too. Once it is true, it stays so.
	Shared() bool
	// KeepsLogs reports whether Listed has the jobs that have ended, until they are forgotten.
	KeepsLogs() bool
	// Asked returns a process that this Host has not taken, for the questions of Processes.
	Asked(l Listed) Process
	// Listed returns the processes that have a note, whoever has started them.
	Listed(ctx context.Context) ([]Listed, error)
	// Take continues a process, from the offset of its output, or from the oldest output that the
	// host keeps if the offset is negative. Processes with a Program.Spool have no turns. The error
	// is ErrTurn if another Host does not yield, and fs.ErrNotExist if there is no such process.
	Take(ctx context.Context, l Listed, offset int64) (Taken, error)
	// Drop ends a process that this Host has not taken.
	Drop(ctx context.Context, l Listed) error
}

// A Listed is a process that a host keeps.
type Listed struct {
	ID         string // the host's own
	Note       string
	Rows, Cols int
	Commands   bool
}

// A Taken is a process whose turn this Host has.
type Taken struct {
	Kept
	Clean bool // the Host before has yielded it while it was idle, and has then set the note
}

// A SharedProcess is a KeptProcess of a Sharer.
type SharedProcess interface {
	KeptProcess
	// Listed describes the process for Take.
	Listed() Listed
	// OnWanted sets what is called when another Host wants the turn: a function that calls Yield,
	// soon, and returns true, or returns false. It is called in a goroutine of its own.
	OnWanted(yields func() bool)
	// Offset returns how many bytes of the output have been read.
	Offset() int64
	// Yield gives the turn away, and lets go of the process. The note is sent before.
	Yield(idle bool)
	// Gone returns why this Host has no longer to do with the process: ErrTurn if another one has
	// the turn, or had it while the connection was cut; fs.ErrNotExist if another one has ended the
	// process; nil for any other reason.
	Gone() error
}

// ErrTurn says that another Host has the turn of a process.
var ErrTurn = errors.New("another program uses it")

// A NameTakenError says that the number in the name of a Start is taken.
type NameTakenError struct{ Next int } // Next is free

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("the name is taken, and %d is free", e.Next)
}

// A Name is what a process is called by all Hosts.
type Name struct {
	Text string
	New  bool // no process has had it, or one with a greater number
}

type nameKey struct{}

// Named returns a context for a Start of a process that gets a name. If the name is taken, the
// error is a *NameTakenError, or fs.ErrExist if a running process has it. Hosts that are no
// Sharers take no names.
func Named(ctx context.Context, name string, isNew bool) context.Context {
	return context.WithValue(ctx, nameKey{}, Name{name, isNew})
}

// NameOf returns the name that Named has set.
func NameOf(ctx context.Context) Name {
	name, _ := ctx.Value(nameKey{}).(Name)
	return name
}
