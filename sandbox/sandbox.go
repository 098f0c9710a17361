// Package sandbox is the contract of sandshell: what any sandbox can do.
//
// A [Sandbox] is a place in which commands run: a container, a pod, a machine with an sshd, this
// machine. It remembers: a command runs in a real shell on a real terminal, so the working
// directory, variables, activated environments and running programs are still there at the next
// call. The package holds interfaces, options, results and errors, and imports only the standard
// library. Package sandbox/shellbox turns any place that can start a process into a Sandbox.
// Packages localbox, sshbox and kubebox are such places. Package sandbox/sandboxtest checks an
// implementation.
//
// # Commands
//
// [Session.Execute] runs a command and returns when it has ended ([Exited]), when it waits for an
// answer ([Waiting]), or when the caller wants to hear back earlier ([Running], by [Yield], [Idle]
// or [Until]). An unfinished command goes on with [Session.Input], [Session.Wait] or
// [Session.Interrupt]. A non-zero exit status is data, not an error.
//
// [Observe] wraps a Sandbox and tells an [Observer] what goes on in it. Two packages are such
// observers: sandbox/recording makes a file that asciinema plays, and sandbox/tracing has spans of
// OpenTelemetry's.
//
// # Concurrency and lifetimes
//
// All methods may be called from several goroutines. A session runs one command at a time: a second
// Execute while one is unfinished gets [ErrBusy]. Programs that want two commands at once open two
// sessions. A context governs its call for the call's whole length, and nothing that the call
// returns. If the context ends, the call's error wraps both the context's Err and its Cause,
// so errors.Is finds context.Canceled or context.DeadlineExceeded. Close ends everything and frees
// every waiter with [ErrClosed]; the sessions and jobs of a sandbox end with it.
package sandbox

import (
	"context"
	"io"
	"net"
	"syscall"
	"time"
)

// A Session is a shell that stays: one terminal, one working directory, one environment.
type Session interface {
	// ID returns the session's name, which is unique in its sandbox. The main session's is "main".
	ID() string

	// Execute runs command in the shell and waits until it has ended or waits for input. The
	// command is what a person would type. It may be of any length, have several lines, and change
	// the shell itself (cd, export, set -o, exit). Stdout and stderr share the terminal.
	//
	// While an earlier command is unfinished, Execute returns ErrBusy. When ctx ends, or after
	// Timeout, the command is killed. The Result then holds what the command printed and its real
	// exit status, and the error is ctx's or ErrTimeout.
	Execute(ctx context.Context, command string, opts ...ExecOption) (*Result, error)

	// Input types text, as it is, to the unfinished command and goes on waiting for the command. An
	// answer to a question needs its "\n". "\x04" is the end of input, "\x03" the interrupt key.
	// What the terminal echoes is part of the output. Text that the command has not read when it
	// ends is dropped: no shell executes it, and the next command does not get it. Result.Unread
	// says how much. If no command is unfinished, Input returns ErrIdle. The end of ctx and Timeout
	// kill the command, as with Execute.
	Input(ctx context.Context, text string, opts ...ExecOption) (*Result, error)

	// Wait goes on waiting for the unfinished command, under the same conditions as Execute. It
	// returns at once if the command still waits for the same input, or has ended since the last
	// call about it. If there is nothing to wait for, it returns ErrIdle. If a command ends and no
	// call returns its Result, the next Execute drops that Result.
	//
	// The end of ctx ends only the waiting, unlike with Execute: the command goes on, and Wait
	// returns ctx's error and a Result in State Running with what the command has printed. Timeout
	// kills the command here too.
	Wait(ctx context.Context, opts ...ExecOption) (*Result, error)

	// Interrupt ends the unfinished command: with the interrupt key, as a person would, then with
	// SIGTERM and SIGKILL to the command and its descendants, until the shell is back. If no
	// command is unfinished, it returns ErrIdle.
	Interrupt(ctx context.Context, opts ...ExecOption) (*Result, error)

	// Type types text, as Input does, and does not wait. If no command is unfinished, it returns
	// ErrIdle.
	Type(ctx context.Context, text string) error

	// Screen returns what a person would see on the terminal now. It is meant for full-screen
	// programs.
	Screen(ctx context.Context) (*Screen, error)

	// Resize changes the size of the terminal; programs on it get SIGWINCH.
	Resize(ctx context.Context, rows, cols int) error

	// Close ends the shell and what runs in it. Calls under way, and later ones, return ErrClosed.
	// Closing again does nothing.
	Close() error
}

// A Sandbox is its main Session, and more.
type Sandbox interface {
	Session

	// Open starts one more independent shell.
	Open(ctx context.Context, opts ...SessionOption) (Session, error)

	// Session returns the open session of that id. ok is false if there is none.
	Session(id string) (s Session, ok bool)

	// Sessions returns the open sessions: the main one first, then in the order of their start. In
	// a sandbox that the program has attached to, these are also those of the program before.
	Sessions() []Session

	// Background starts command as a job, in a shell and on a terminal of its own, beside all
	// sessions. It returns as soon as the command has been started.
	Background(ctx context.Context, command string, opts ...SessionOption) (Job, error)

	// Job returns the job of that id, running or ended. ok is false if there is none.
	Job(id string) (j Job, ok bool)

	// Jobs returns all jobs, in the order of their start.
	Jobs() []Job

	// Run runs a program without terminal, shell and state, with stdout and stderr apart, and waits
	// for its end. If signal n ended the program, the exit code is 128+n. If the program does not
	// exist, the exit code is 127 and the error fs.ErrNotExist. If it may not be executed, they are
	// 126 and fs.ErrPermission. When ctx ends, the program and its descendants are killed. Any
	// number of Runs may be under way at once.
	Run(ctx context.Context, cmd *Cmd) (exitCode int, err error)

	// CopyTo copies a file or directory from this machine into the sandbox. If boxPath is an
	// existing directory, the copy is made in it. Else boxPath is the copy's new name, and its
	// parent must exist. A relative boxPath starts at the main session's directory, and a leading
	// "~/" at the user's home. A path that ends in a slash names a directory, or a link to one; if
	// a file is there, the error is ENOTDIR.
	//
	// Links stay links, holes stay holes, and files that have several names keep them. Permissions
	// and times are kept; where a tar that is not GNU's makes the copy, times are whole seconds.
	// The copy belongs to the sandbox's user, and has no ACLs and extended attributes. CopyTo keeps
	// the set-user-ID, set-group-ID and sticky bits, CopyFrom only the sticky bits of directories.
	// Sockets and devices are left out, and by CopyFrom FIFOs too.
	//
	// If something below the source cannot be read, or goes away meanwhile, it is left out. When
	// all else has been copied, a *CopyError tells of it. A file that changes while it is read is
	// copied as it is read.
	//
	// A file replaces a file, and a read-only one too: the user must be allowed to write in the
	// directory, not to the file. A directory is added, file by file, to a directory of its name. A
	// file does not replace a directory (EISDIR), nor a directory a file (ENOTDIR), and nothing
	// replaces a device, a FIFO or a socket (fs.ErrInvalid). A file that is a mount of its own,
	// such as a container's /etc/hosts, is EBUSY: a program must write into it.
	//
	// Other errors are *fs.PathError, around a syscall.Errno: fs.ErrNotExist, fs.ErrPermission,
	// EISDIR, ENOTDIR, ENOSPC, and so on. The Errno is EIO if the program that copies in the
	// sandbox was killed, or failed without a reason.
	CopyTo(ctx context.Context, hostPath, boxPath string) error

	// CopyFrom copies a file or directory out of the sandbox, by the rules of CopyTo. Nothing in
	// the sandbox can make it write outside hostPath. To copy more than some 90,000 directories at
	// once is an error.
	CopyFrom(ctx context.Context, boxPath, hostPath string) error

	// Files returns the sandbox's files, for small things: read, write, look. Files itself does no
	// I/O; the methods of the result do.
	Files() Files

	// Dial connects to an address as seen from inside the sandbox. The networks are "tcp", "tcp4",
	// "tcp6", and "unix" with a path by the rules of CopyTo.
	Dial(ctx context.Context, network, address string) (net.Conn, error)

	// Listen listens on an address inside the sandbox. Its Accept returns, here, the connections
	// that programs in the sandbox make to that address. So a sandbox without a network of its own
	// can get a service of this program's too.
	//
	// The networks are "tcp", "tcp4" and "tcp6" with a port and an IP address, "localhost" or ""
	// (all addresses). If the port is 0, a free one is taken. Addr tells the port, and the address:
	// an sshd without GatewayPorts makes loopback of all addresses. The network "unix" takes a path
	// by the rules of CopyTo. The socket belongs to the sandbox's user, nobody else but root may
	// connect, and Close removes it. For other networks the error is errors.ErrUnsupported.
	//
	// Any program inside that can reach the address may connect: the service must do nothing that
	// not every program inside may have done. An accepted connection may hold some MiB of unread
	// data in memory here, so bound how many you accept at once. Up to 128 connections wait for
	// Accept, in no promised order. Further ones wait at the sandbox's end; over a plain sshd they
	// are turned away.
	//
	// ctx governs the call. The listener lives until its Close or the sandbox's. While the
	// connection to the sandbox is cut and made again, accepted connections fail with ErrCut, and
	// new ones wait. Connections have CloseWrite. Accept returns net.ErrClosed after the listener's
	// Close, ErrClosed after the sandbox's, and ErrLost when the sandbox is lost. Errors of Listen
	// are *net.OpError. Where it is known what is wrong, they wrap syscall.EADDRINUSE,
	// EADDRNOTAVAIL, EACCES, fs.ErrNotExist or *net.AddrError.
	Listen(ctx context.Context, network, address string) (net.Listener, error)

	// String returns the kind of sandbox: "LocalBox", "SSHBox", "DockerSSHBox", "KubeBox".
	String() string
}

// A Job is a command in a background session.
type Job interface {
	// ID returns the job's name, which is unique in its sandbox.
	ID() string

	// Command returns the command as it was given.
	Command() string

	// Logs returns what the job has printed, as its terminal got it, from offset on, and next, the
	// offset to read on from. Offsets count the bytes of the whole output. Logs does not wait: if
	// there is nothing new yet, there is no data and next is offset. One call returns at most 1
	// MiB. An offset beyond the end is an error.
	//
	// The last 64 MiB, or what MaxLog says, are kept until Forget or the sandbox's Close (on disk,
	// if they are long). If what was at offset is no longer kept, the data begins with the first
	// byte that is, whose offset is next-len(data). Any number of readers may read from any offset,
	// during the job and after it.
	Logs(ctx context.Context, offset int64) (data []byte, next int64, err error)

	// Input types text to the job's terminal. After the job's end it returns ErrIdle.
	Input(ctx context.Context, text string) error

	// Signal sends sig to the job's foreground process group. After the job's end it returns
	// os.ErrProcessDone.
	Signal(ctx context.Context, sig syscall.Signal) error

	// Kill kills the command and all its descendants, with SIGHUP and SIGTERM first and SIGKILL a
	// second later, and returns when they are gone. Killing an ended job does nothing.
	Kill(ctx context.Context) error

	// Wait waits for the job's end. The Result's Output is the log as a person would read it, head
	// and tail. If a writer of LogTo has panicked or was given up, there is an error beside the
	// Result.
	Wait(ctx context.Context) (*Result, error)

	// Done is closed when the job has ended.
	Done() <-chan struct{}

	// Forget drops an ended job with its log: Job and Jobs no longer return it, and Logs and Wait
	// return ErrClosed. While the job runs, Forget returns ErrBusy.
	Forget() error
}

// A Result says how a command ended, or how far it has got.
type Result struct {
	State State

	// ExitCode is the exit status if State is Exited: 128+n if signal n ended the command. Else it
	// is -1.
	ExitCode int

	// Awaits is what the command waits for if State is Waiting. Else it is 0.
	Awaits InputKind

	// Output is what was printed since the last Result of this command. Lines end with "\n", and
	// control sequences are resolved. It is valid UTF-8: U+FFFD stands for bytes that are not. Tee
	// gets the bytes as they came.
	Output string

	// Omitted is how many bytes are missing from the middle of Output, of which the head and the
	// tail are kept. They are cut at the boundaries of runes and, if one is near, of lines.
	Omitted int64

	// OmittedAt is where in Output they are missing.
	OmittedAt int

	// OOM: while the command ran, the kernel killed a process of the sandbox because memory had run
	// out: the sandbox's (sshbox.Config.Memory) or the machine's. The command's exit status need
	// not show it: if a compiler was killed, make says 2. The kernel counts by sandbox: commands
	// that run at the same time are all told. Sandboxes that boxd serves tell: a DockerSSHBox, a
	// KubeBox, and an SSHBox that has boxd. In others, OOM is always false.
	OOM bool

	// Unread is how many bytes of Input the command had not read when it ended. They are dropped,
	// and never executed.
	Unread int

	// FullScreen: the program draws the whole screen (alternate screen). Screen shows it, Output
	// does not. If State is Exited, a program was killed and has left its screen, which Screen
	// shows until the next command prints. What was printed after the last thing that it drew is in
	// Output.
	FullScreen bool

	// Matched is what Until matched.
	Matched string

	// Cwd is the shell's directory when the shell is back at its prompt.
	Cwd string

	// Restarted: the shell itself ended (exit, exec, set -e, kill). A fresh one took its place, in
	// Cwd.
	Restarted bool

	// Incomplete: the shell wanted more than the command. A quote, a here-document or a compound
	// command was left open.
	Incomplete bool

	// Duration is the time since the command's start.
	Duration time.Duration
}

// A State says how far a command has got.
type State int

const (
	Exited  State = iota + 1 // the command has ended
	Waiting                  // it reads the terminal: Input answers it
	Running                  // it goes on: Yield, Idle, Until or the end of Wait's ctx came first
)

// String returns the state's name in lower case.
func (s State) String() string {
	switch s {
	case Exited:
		return "exited"
	case Waiting:
		return "waiting"
	case Running:
		return "running"
	}
	return "unknown"
}

// An InputKind says what kind of input a waiting command wants.
type InputKind int

const (
	Line   InputKind = iota + 1 // a line, ended by "\n"
	Secret                      // a line that is not echoed: a password or passphrase
	Keys                        // single keys: the program reads a terminal in raw mode
)

// String returns the kind's name in lower case, and "none" for 0.
func (k InputKind) String() string {
	switch k {
	case 0:
		return "none"
	case Line:
		return "line"
	case Secret:
		return "secret"
	case Keys:
		return "keys"
	}
	return "unknown"
}

// A Screen is what a terminal shows.
type Screen struct {
	Lines    []string // from the top; as many as the terminal has rows, without trailing spaces
	Row, Col int      // the cursor, from 0
}

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

	// User runs the program as another user, where the sandbox may become that user: see [User].
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

	// OOM, if not nil, is set by Run as Result.OOM is for a command.
	OOM *bool
}
