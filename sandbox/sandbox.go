// Package sandbox is the contract of sandshell: what a sandbox can do, whoever provides it.
//
// A [Sandbox] is a place in which commands run: a container, a pod, a machine with an sshd, this
// machine. It remembers: a command runs in a real shell on a real terminal, so the working
// directory, variables, activated environments and running programs are still there at the next
// call. The package holds interfaces, options, results and errors, and imports only the standard
// library; package sandbox/shellbox turns any place that can start a process into a Sandbox,
// packages localbox, sshbox and kubebox are such places, and package sandbox/sandboxtest checks an
// implementation.
//
// # Commands
//
// [Session.Execute] runs a command and returns when it has ended ([Exited]), when it waits for an
// answer ([Waiting]), or when the caller wanted to hear back earlier ([Running], by [Yield] or
// [Until]). An unfinished command goes on with [Session.Input], [Session.Wait] or
// [Session.Interrupt]. A non-zero exit status is data, not an error.
//
// [Observe] wraps a Sandbox and tells an [Observer] what goes on in it. Two packages are such
// observers: sandbox/recording makes a file that asciinema plays, and sandbox/tracing has spans of
// OpenTelemetry's.
//
// # Concurrency and lifetimes
//
// All methods may be called from several goroutines. A session runs one command at a time: a second
// Execute while one is unfinished gets [ErrBusy], so programs that want two at once open two
// sessions. A context governs its call for the call's whole length; it does not live on in what the
// call returns. If the context ends, the call's error wraps both the context's Err and its Cause,
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
	// ID names the session; it is unique in its sandbox. The main session's is "main".
	ID() string

	// Execute runs command in the shell and waits until it has ended or waits for input. The
	// command may be of any length and have several lines; it is what a person would type, and may
	// change the shell itself (cd, export, set -o, exit). Stdout and stderr share the terminal.
	//
	// Execute returns ErrBusy while an earlier command is unfinished. When ctx ends, or after
	// Timeout, the command is killed: the Result then holds what it printed and its real exit
	// status, and the error is ctx's or ErrTimeout.
	Execute(ctx context.Context, command string, opts ...ExecOption) (*Result, error)

	// Input types text, as it is, to the unfinished command and goes on waiting for it. An answer
	// to a question needs its "\n"; "\x04" is the end of input, "\x03" the interrupt key. What the
	// terminal echoes is part of the output. What the command has not read when it ends is dropped:
	// no shell executes it, and the next command does not get it. Result.Unread says how much.
	// Input returns ErrIdle when no command is unfinished. The end of ctx and Timeout kill the
	// command, as with Execute.
	Input(ctx context.Context, text string, opts ...ExecOption) (*Result, error)

	// Wait goes on waiting for the unfinished command, under the same conditions as Execute. It
	// returns at once if that command still waits for the same input, or has ended since the last
	// call about it. It returns ErrIdle when there is nothing to wait for. (The next Execute drops
	// an end that no call has returned.) Unlike with Execute, the end of ctx ends only the waiting:
	// the command goes on, and Wait returns ctx's error and a Result in State Running with what the
	// command has printed. (Timeout kills the command here too.)
	Wait(ctx context.Context, opts ...ExecOption) (*Result, error)

	// Interrupt ends the unfinished command: with the interrupt key, as a person would, then with
	// SIGTERM and SIGKILL to the command and its descendants, until the shell is back. It returns
	// ErrIdle when no command is unfinished.
	Interrupt(ctx context.Context, opts ...ExecOption) (*Result, error)

	// Type types text, as Input does, and does not wait. It returns ErrIdle when no command is
	// unfinished.
	Type(ctx context.Context, text string) error

	// Screen returns what a person would see on the terminal now. It is meant for full-screen
	// programs.
	Screen(ctx context.Context) (*Screen, error)

	// Resize changes the size of the terminal; programs on it get SIGWINCH.
	Resize(ctx context.Context, rows, cols int) error

	// Close ends the shell and what runs in it. Calls under way return ErrClosed. Closing again
	// does nothing.
	Close() error
}

// A Sandbox is its main Session, and more.
type Sandbox interface {
	Session

	// Open starts one more independent shell.
	Open(ctx context.Context, opts ...SessionOption) (Session, error)

	// Background starts command as a job: in a shell and on a terminal of its own, beside all
	// sessions. It returns as soon as the command has been started.
	Background(ctx context.Context, command string, opts ...SessionOption) (Job, error)

	// Job returns the job of that id, running or ended.
	Job(id string) (Job, bool)

	// Jobs returns all jobs, in the order of their start.
	Jobs() []Job

	// Run runs a program without terminal, shell and state, with stdout and stderr apart, and waits
	// for its end. The exit code is 128+n when signal n ended the program. A program that does not
	// exist gives 127 and an error that is fs.ErrNotExist, one that may not be executed 126 and
	// fs.ErrPermission. When ctx ends, the program and its descendants are killed. Any number of
	// Runs may be under way at once.
	Run(ctx context.Context, cmd *Cmd) (exitCode int, err error)

	// CopyTo copies a file or directory from this machine into the sandbox. If boxPath is an
	// existing directory, the copy is made in it; else boxPath is the copy's new name, and its
	// parent must exist. A relative boxPath starts at the main session's directory, and a leading
	// "~/" at the user's home. A path that ends in a slash is a directory's, also behind a link; a
	// file there is ENOTDIR.
	//
	// Links stay links, holes stay holes, and files that have several names keep them. Permissions
	// and times are kept; times are whole seconds where tar makes the copy and is not GNU's. The
	// copy belongs to the sandbox's user, and has no ACLs and extended attributes. CopyTo keeps the
	// set-user-ID, set-group-ID and sticky bits, CopyFrom only the sticky bits of directories.
	// Sockets and devices are left out, and by CopyFrom FIFOs too.
	//
	// What is below the source and cannot be read, or goes away meanwhile, is left out, and told by
	// a *CopyError when all else was copied. A file that changes while it is read is copied as it
	// is read.
	//
	// A file takes the place of a file, of a read-only one too: for that the user must be allowed
	// to write in the directory, not to the file. A directory is added to one of its name, file by
	// file. A file does not take the place of a directory of its name (EISDIR), nor a directory
	// that of a file (ENOTDIR), and nothing that of a device, a FIFO or a socket (fs.ErrInvalid). A
	// file that is a mount of its own, as a container's /etc/hosts, is EBUSY: a program must write
	// into it.
	//
	// Other errors are *fs.PathError, around a syscall.Errno: fs.ErrNotExist, fs.ErrPermission,
	// EISDIR, ENOTDIR, ENOSPC, …; EIO where what copies in the sandbox was killed, or failed
	// without a reason.
	CopyTo(ctx context.Context, hostPath, boxPath string) error

	// CopyFrom copies a file or directory out of the sandbox, by the rules of CopyTo. Nothing in
	// the sandbox can make it write outside hostPath. More than some 90,000 directories at once are
	// an error.
	CopyFrom(ctx context.Context, boxPath, hostPath string) error

	// Files are the sandbox's files, for small things: read, write, look. Asking for them costs
	// nothing and cannot fail; their calls do.
	Files() Files

	// Dial connects to an address as seen from inside the sandbox. Networks: "tcp", "tcp4", "tcp6";
	// "unix" with a path by the rules of CopyTo.
	Dial(ctx context.Context, network, address string) (net.Conn, error)

	// Listen listens on an address inside the sandbox: what the programs there connect to it is
	// accepted here. So the sandbox gets a service of this program's also where it has no network
	// of its own. Networks: "tcp", "tcp4", "tcp6" with an IP address, "localhost" or "" (all
	// addresses) and a port, where 0 stands for one that is free, which Addr tells (as it does
	// where an sshd without GatewayPorts makes loopback of all addresses); "unix" with a path by
	// the rules of CopyTo, of a socket that belongs to the sandbox's user, who alone may connect
	// (besides root), and that Close removes.
	//
	// Any program inside may connect that can reach the address: the service must do nothing for it
	// that not every program inside may have done. An accepted connection may hold some MiB of
	// memory here that nobody has read, so accept no more at once than that allows. Up to 128 wait
	// for Accept, further ones at the sandbox's end (over a plain sshd they are turned away); which
	// of those that wait comes first is not said.
	//
	// ctx governs the call; the listener lives until its Close or the sandbox's. While the
	// connection to the sandbox is cut and made again, connections that were accepted fail with
	// ErrCut, and new ones wait. Connections have CloseWrite. Accept returns net.ErrClosed after
	// the listener's Close, ErrClosed after the sandbox's, and ErrLost when the sandbox is lost.
	// Errors of Listen are *net.OpError around what is wrong, where that is known:
	// syscall.EADDRINUSE, EADDRNOTAVAIL, EACCES, fs.ErrNotExist, *net.AddrError;
	// errors.ErrUnsupported for other networks.
	Listen(ctx context.Context, network, address string) (net.Listener, error)

	// String names the kind of sandbox: "LocalBox", "SSHBox", "DockerSSHBox", "KubeBox".
	String() string
}

// A Job is a command in a background session.
type Job interface {
	// ID names the job; it is unique in its sandbox.
	ID() string

	// Command is the command as it was given.
	Command() string

	// Logs returns what the job printed, as its terminal got it, from an absolute offset in bytes
	// on; and next, the offset to read on from. It does not wait: no data and next == offset means
	// that there is nothing new yet. One call returns at most 1 MiB. The last 64 MiB, or what
	// MaxLog says, are kept (on disk, if they are long) until Forget or the sandbox's Close. Any
	// number of readers may read from any offset, during the job and after it. An offset beyond the
	// end is an error. If what was at offset is no longer kept, the data begins with the first byte
	// that is: next-len(data) is its offset.
	Logs(ctx context.Context, offset int64) (data []byte, next int64, err error)

	// Input types text to the job's terminal. It returns ErrIdle after the job's end.
	Input(ctx context.Context, text string) error

	// Signal sends sig to the job's foreground process group. It returns os.ErrProcessDone after
	// the job's end.
	Signal(ctx context.Context, sig syscall.Signal) error

	// Kill kills the command and all its descendants, with SIGHUP and SIGTERM first and SIGKILL a
	// second later, and returns when they are gone. Killing an ended job does nothing.
	Kill(ctx context.Context) error

	// Wait waits for the job's end. The Result's Output is the log as a person would read it, head
	// and tail. Beside the Result there is an error if the writer of LogTo has panicked, or was
	// given up.
	Wait(ctx context.Context) (*Result, error)

	// Done is closed when the job has ended.
	Done() <-chan struct{}

	// Forget drops an ended job with its log: the sandbox no longer knows it, and Logs and Wait
	// return ErrClosed. While the job runs, the error is ErrBusy.
	Forget() error
}

// A Result says how a command ended, or how far it has got.
type Result struct {
	State    State
	ExitCode int // when State is Exited; 128+n when signal n ended it; else -1
	// when State is Waiting: Line, Secret (no echo) or Keys (a raw or full-screen program)
	Awaits InputKind

	// Output is what was printed since the last Result of this command; lines end with "\n",
	// control sequences are resolved. It is valid UTF-8: U+FFFD stands for bytes that are not (Tee
	// has them as they came).
	Output string
	// bytes cut out of the middle of Output (head and tail are kept), at rune and, where there is
	// one near, line boundaries
	Omitted   int64
	OmittedAt int // where in Output they were

	// OOM: while the command ran, the kernel killed a process of the sandbox because memory had run
	// out: the sandbox's (sshbox.Config.Memory), or the machine's. The command's exit status need
	// not show it: of a killed compiler, make says 2. The kernel's count is the sandbox's: of
	// commands that run at the same time, all are told. A box with boxd tells: a DockerSSHBox, a
	// KubeBox, and an SSHBox that has one. Elsewhere it is false.
	OOM bool

	// Unread is how many bytes of Input the command had not read when it ended. They are dropped,
	// and never executed.
	Unread int

	// FullScreen: the program draws the whole screen (alternate screen): Screen shows it, Output
	// does not. In an Exited Result: a program that was killed has left its screen, which Screen
	// shows until the next command prints. What was printed behind the last thing that it drew is
	// in Output.
	FullScreen bool

	Matched string // what Until matched
	Cwd     string // the shell's directory, when it is back at its prompt
	// the shell itself ended (exit, exec, set -e, kill): a fresh one took its place, in Cwd
	Restarted bool
	// the shell wanted more than the command: a quote, a here-document or a compound command was
	// left open
	Incomplete bool
	Duration   time.Duration // since the command's start
}

// A State says how far a command has got.
type State int

const (
	Exited  State = iota + 1 // the command ended
	Waiting                  // it reads the terminal: Input answers it
	Running                  // still going: Yield, Idle, Until or the end of Wait's ctx came first
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
	Args []string // the program and its arguments; no shell interprets them
	// working directory; "" is the sandbox's, where a relative one starts; "~" is not expanded
	Dir string
	Env []string // "NAME=value", added to the sandbox's; a later one of the same name wins
	// ReplaceEnv says that Env is the whole environment: neither the sandbox's variables nor the
	// host's are added. A program without a slash in its name is looked up in Env's PATH; without
	// one there, no such program is found. One variable is there all the same: SANDSHELL_SESSION,
	// by which Close and the end of ctx find what the program has started.
	ReplaceEnv bool
	// User runs the program as another user, where the sandbox may become that user: see [User].
	User string
	// Stdin is read until its end; nil is an empty input. If a Read fails, the program is killed,
	// as by the end of ctx, and Run returns that error. A Reader that blocks for ever does not keep
	// Run from returning, but its Read stays behind until it returns.
	Stdin io.Reader
	// Stdout and Stderr get what the program writes; nil discards it. If both are the same writer,
	// of a type that == can compare, the two streams are one, as with 2>&1: the writer gets
	// everything in the order in which the program wrote it, and at most one Write at a time, as in
	// os/exec.
	//
	// If a Write fails or panics, what follows is discarded, the program goes on, and Run returns
	// its exit code and that error. A Write that blocks keeps Run from returning until ctx ends or
	// the sandbox is closed; then Run waits a second for it, and it stays behind until it returns.
	Stdout, Stderr io.Writer
	// OOM, if not nil, is set by Run to what Result.OOM is of a command.
	OOM *bool
}
