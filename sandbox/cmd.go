package sandbox

import (
	"context"
	"io"
	"syscall"
)

// A Cmd is a program to Run.
type Cmd struct {
	// Args are the program and its arguments. No shell interprets them.
	Args []string

	// Dir is the working directory. "" is the sandbox's directory, where a relative one starts too.
	// "~" is not expanded.
	Dir string

	// Env has variables, each "NAME=value", that are added to the sandbox's. If a name comes twice,
	// the later one wins.
	Env []string

	// ReplaceEnv says that Env is the whole environment: neither the sandbox's variables nor the
	// host's are added. A program without a slash in its name is looked up in the PATH of Env, and
	// not found if Env has none. One variable is added all the same: SANDSHELL_SESSION, by which
	// Close and the end of ctx find what the program has started.
	ReplaceEnv bool

	// User runs the program as another user, where the sandbox may become that user, by
	// the rules of the option User.
	User string

	// Stdin is read until its end; nil is an empty input. If a Read fails, the program is killed,
	// as by the end of ctx, and Run returns that error. If a Read blocks for ever, Run returns all
	// the same, and the Read stays behind until it returns.
	Stdin io.Reader

	// Stdout and Stderr get what the program writes; nil discards it. If both are the same writer,
	// of a type that == can compare, the two streams are one, as with 2>&1: the writer gets
	// everything in the order in which the program wrote it, and at most one Write at a time, as in
	// os/exec.
	//
	// If a Write fails or panics, what follows is discarded, the program goes on, and Run returns
	// its exit code and that error. A Write that blocks keeps Run from returning until ctx ends or
	// the sandbox is closed. Then Run waits a second for the Write, which stays behind until it
	// returns.
	Stdout, Stderr io.Writer

	// If OOM is not nil, Run sets it to whether memory ran out while the program ran: see
	// Result.OOM.
	OOM *bool

	// Terminal runs the program on a new terminal of that size, for programs that ask for one; nil:
	// none. What is read from Stdin is typed, byte for byte: "\x04" is the end of input, "\x03" the
	// interrupt key. The end of Stdin types nothing, so the program goes on. Stdout gets what the
	// terminal shows, byte for byte, and Stderr gets nothing.
	//
	// The terminal's modes are those of sessions: it echoes, and lines end with "\n" alone. A
	// program that is shown on a terminal in raw mode runs after "stty onlcr echoctl". TERM is that
	// of the sandbox's environment.
	Terminal *Terminal

	// Started is called once when the program runs, before anything is read from Stdin or written
	// to Stdout and Stderr. p is for use until Run returns and later, by any goroutine. If Started
	// blocks, the streams wait for it; after the end of ctx, Run returns all the same. If it
	// panics, the program goes on, and Run returns its exit code and an error. nil: nothing is
	// called.
	Started func(p Process)
}

// A Terminal is the terminal of a Cmd.
type Terminal struct {
	Rows, Cols int // 0: DefaultRows, DefaultCols; at most 10,000
}

// A Process is a program that Run has started. Its methods may be called from several goroutines.
// After the program's end, Signal and Resize return os.ErrProcessDone, and after the sandbox's
// Close ErrClosed.
type Process interface {
	// PID returns the process id in the sandbox, or on the machine of a LocalBox or SSHBox.
	PID() int

	// Signal sends sig to the program's process group: to the program, and to those that it has
	// started and not put into groups of their own. So SIGTERM to a shell also reaches the program
	// that the shell waits for. An interactive shell on a terminal gives each command a group: for
	// these, type "\x03". The end of Run's ctx kills all descendants.
	Signal(ctx context.Context, sig syscall.Signal) error

	// Resize changes the size of the Cmd's Terminal; programs on it get SIGWINCH. Without a
	// Terminal, it is an error.
	Resize(ctx context.Context, rows, cols int) error
}
