package shellbox

import (
	"context"
	"io"
	"net"
)

// A Host is a place that can be made a sandbox: it starts processes, with or without a terminal,
// and connects to addresses. Its methods may be called concurrently.
//
// A Host may also implement [Copier], [FileHost] and [ListenHost].
type Host interface {
	// Start starts a program. It returns once the program runs. ctx governs the start only.
	//
	// If the program or its directory does not exist, the error is fs.ErrNotExist; for the program
	// it is exec.ErrNotFound too. If the program may not be executed, it is fs.ErrPermission. If
	// Program.User does not exist, the error is a user.UnknownUserError. If the host may not become
	// that user, it is fs.ErrPermission. If the host cannot become any other user, it is
	// errors.ErrUnsupported.
	Start(ctx context.Context, p Program) (Process, error)

	// Dial connects to an address as seen from the host.
	Dial(ctx context.Context, network, address string) (net.Conn, error)

	// Lost returns why the host is gone, as a *sandbox.LostError; nil if the host is there. It may
	// wait until ctx ends to find out. The engine calls it when a process has ended without a
	// status.
	Lost(ctx context.Context) error

	// String returns the kind of sandbox, for Sandbox.String.
	String() string

	// Close releases the host. Processes that still run lose their streams.
	Close() error
}

// A Program is a program for a Host to start.
type Program struct {
	// Args are the program, which is looked up in the PATH of its environment, and its arguments.
	Args []string

	// Dir is the working directory. A relative one starts at the host's own. "~" is the home of
	// User, as the user database has it. If it is unknown, the error is one of Start. Default: the
	// host's own.
	Dir string

	// Env is added to the host's environment: "NAME=value". The last value of a name counts.
	Env []string

	// ReplaceEnv: Env is the whole environment. Nothing is added, not even PWD.
	ReplaceEnv bool

	// User is the user as whom the program runs, in the form of sandbox.User. Default: the host's
	// own.
	User string

	// Terminal is the terminal on which the program is started. If it is nil, the program gets
	// three pipes.
	Terminal *Terminal

	// Joined: without a Terminal, standard error goes where standard output goes. Process.Stderr is
	// nil or empty.
	Joined bool

	// Spool is a hint for hosts whose programs outlive a connection: keep the last Spool bytes of
	// each output, and do not make the program wait while the output has no reader. 0: no hint.
	Spool int64
}

// A Terminal describes the new terminal on which a program is started. It becomes the program's
// controlling terminal. It is in canonical mode with echo, and without ONLCR, which costs a byte a
// line and on SSH three quarters of the speed.
type Terminal struct {
	Rows, Cols int // the size; both are above 0

	// Commands: the program's standard input is a pipe, which Process.Commands writes to. The
	// terminal is its standard output, its standard error and its controlling terminal. Shells are
	// started so: no program on the terminal can read the shell's commands.
	Commands bool
}

// A Process is a program that a Host has started. It leads a process session of its own (setsid).
type Process interface {
	// PID returns the process's id on its host.
	PID() int

	// Stdin writes to the program's standard input or terminal. Its Close ends the program's input;
	// with a terminal, it does nothing. On a terminal, the Host must not type faster than the echo
	// is read: see program.Keyboard.
	Stdin() io.WriteCloser

	// Commands writes to the pipe of a program with Terminal.Commands; nil for any other. Its Close
	// ends the program's standard input.
	Commands() io.WriteCloser

	// Stdout is the standard output, or what the terminal shows. The caller must read it to io.EOF.
	// io.ErrUnexpectedEOF says that the end of the output is missing because the host is lost, even
	// if Wait returns a status.
	Stdout() io.Reader

	// Stderr is the standard error; nil with a terminal, nil or empty with Program.Joined.
	Stderr() io.Reader

	// Resize sets the terminal's size.
	Resize(rows, cols int) error

	// Wait waits for the program's end. It does not wait for the end of the output, which may come
	// later, and does not come while a descendant holds the output open. An error says that there
	// is no exit status.
	Wait() (Status, error)

	// Close closes the streams: reads and writes under way return, and a process on a terminal gets
	// SIGHUP. Wait then returns, with an error if the host no longer knows the status. Closing
	// again does nothing.
	Close() error
}

// A Status says how a program ended.
type Status struct {
	Code   int // exit status; 128+n if signal n ended it
	Signal int // the signal that ended it, 0 if none did
}
