package session

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/boxenv"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
)

// A Box is what this package needs of the sandbox whose sessions it makes. The sandbox sets all
// exported fields before it makes the first session.
type Box struct {
	Name string // what errors call it
	Log  *slog.Logger

	// These are those of shellbox.Options, with their defaults.
	Dir               string
	Shell             []string
	Grace, StartLimit time.Duration

	// Owner is the box whose host this one uses (AsUser); nil: the host is its own.
	Owner *Box

	// Env is what the sandbox adds to the environment of its programs.
	Env *boxenv.Env

	// Processes answers questions about processes.
	Processes *processes.Host

	// ControlShell says that the control shell answers them. It takes longer than a host, and
	// cannot settle.
	ControlShell bool

	// Keeps says that the host is a hostapi.Keeper, and that other programs may find the sessions
	// there.
	Keeps bool

	// Sharer is the host, if it shares the sessions with other programs; nil if it does not.
	Sharer hostapi.Sharer

	// Start starts a shell, as Start of a shellbox.Host does.
	Start func(ctx context.Context, p Program) (Process, error)

	// Wait waits for the end of a Process. An error says that there is no status.
	Wait func(p Process) (Status, error)

	// Run is Run of the sandbox, within a call.
	Run func(ctx context.Context, cmd *sandbox.Cmd) (int, error)

	// Lost returns why the host is gone, or err if it is there.
	Lost func(err error) error

	// Touch records that a command begins or ends.
	Touch func()

	// Leave removes a session that ends from those that the sandbox has, and reports whether it was
	// one of them. It is called without locks: the sandbox may hold its own when it calls a
	// session.
	Leave func(id string) bool

	noBash   atomic.Bool  // there is no bash on the host
	commands atomic.Int64 // the number of commands so far, for the log

	mu      sync.Mutex
	hostENV map[string]*string // the value of ENV that the host gives to a user's programs
}

// A Program is a shell for a host to start, on a terminal, with its commands on a pipe. If Pipes is
// set, it is a shell with its command in Args, on three pipes.
type Program struct {
	Args       []string
	Dir        string
	Env        []string
	User       string
	Pipes      bool
	Rows, Cols int   // of the terminal
	Spool      int64 // as in shellbox.Program
}

// A Process is the shellbox.Process of a Program.
type Process interface {
	hostapi.Process
	Stdin() io.WriteCloser
	Commands() io.WriteCloser
	Stdout() io.Reader
	Stderr() io.Reader // nil with a terminal
	Resize(rows, cols int) error
	Close() error
}

// A Status is a shellbox.Status.
type Status struct{ Code, Signal int }
