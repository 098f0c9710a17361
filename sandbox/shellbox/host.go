package shellbox

import (
	"context"
	"io"
	"net"
)

// A Host is the little that a place must offer to be made a sandbox: it starts processes, with or
// without a terminal, and connects to addresses. All methods may be called from several goroutines.
type Host interface {
	// Start starts a program. It returns once the program runs. The error is fs.ErrNotExist if the
	// program or its directory does not exist (exec.ErrNotFound too if the program does not), and
	// fs.ErrPermission if the program may not be executed. Of a Program.User that does not exist it
	// is a user.UnknownUserError, of one that the host may not become fs.ErrPermission, and
	// errors.ErrUnsupported where it can become none. ctx governs the start only.
	Start(ctx context.Context, p Program) (Process, error)

	// Dial connects to an address as seen from the host.
	Dial(ctx context.Context, network, address string) (net.Conn, error)

	// Lost returns why the host is gone, as a *sandbox.LostError; nil if the host is there. It may
	// wait to find out, at most until ctx ends. The engine calls it when a process ended without a
	// status.
	Lost(ctx context.Context) error

	// String names the kind of sandbox, as Sandbox.String has it.
	String() string

	// Close lets go of the host. Processes that still run lose their streams.
	Close() error
}

// A Program is what a Host starts.
type Program struct {
	// the program, looked up in the PATH of the program's environment, and its arguments
	Args []string
	Dir  string   // working directory; "" is the host's own, where a relative one starts
	Env  []string // "NAME=value", added to the host's; later ones win
	// the user as whom it runs, as sandbox.User has it; "" is the host's own. See program.AccountOf
	User       string
	ReplaceEnv bool      // Env is the whole environment: nothing is added, not even PWD
	Terminal   *Terminal // nil: three pipes
	// without a terminal: standard error goes where standard output goes. Process.Stderr is nil or
	// empty
	Joined bool

	// Spool is a hint to a Keeper: keep the last so many bytes of the output, and do not let the
	// program wait for its reader while there is none. 0: no hint.
	Spool int64
}

// A Terminal is the terminal on which a program is started: a new one, the program's controlling
// terminal, in canonical mode with echo, and without ONLCR, which costs a byte and on SSH three
// quarters of the speed.
type Terminal struct {
	Rows, Cols int

	// Commands: the program's standard input is a pipe, which Process.Commands writes to. The
	// terminal is its standard output, its standard error and its controlling terminal. A shell
	// gets its commands so, where no program on the terminal can read them.
	Commands bool
}

// A Process is a program that a Host has started. It leads a process session of its own (setsid).
type Process interface {
	// PID is the process's id on its host.
	PID() int

	// Stdin writes to the program's standard input or terminal. Closing it ends the program's
	// input; with a terminal, it does nothing. On a terminal, the Host must not type faster than
	// the echo is read: see program.Keyboard.
	Stdin() io.WriteCloser

	// Commands writes to the pipe of a program with Terminal.Commands; nil for any other. Closing
	// it ends what the program reads there.
	Commands() io.WriteCloser

	// Stdout is the standard output or what the terminal shows. It must be read, and ends with
	// io.EOF. io.ErrUnexpectedEOF says that not all of it has come, because the host is lost, even
	// if Wait tells a status.
	Stdout() io.Reader

	// Stderr is the standard error; nil with a terminal, nil or empty with Program.Joined.
	Stderr() io.Reader

	// Resize sets the terminal's size.
	Resize(rows, cols int) error

	// Wait waits for the program's end. It does not wait for its output: that must be read on to
	// io.EOF, which may come later than the end, or never while a descendant holds it open. An
	// error says that there is no exit status.
	Wait() (Status, error)

	// Close lets go of the process: its streams are closed, and reads and writes under way return.
	// A process on a terminal gets SIGHUP by that. Closing again does nothing. Wait returns after
	// it, with an error if the host no longer tells the status.
	Close() error
}

// A Status is how a program ended.
type Status struct {
	Code   int // exit status; 128+n if signal n ended it
	Signal int // the signal that ended it, 0 if none did
}
