// Package sandbox is the contract of sandshell: what any sandbox can do.
//
// A [Sandbox] is a place in which commands run: a container, a pod, a machine with an sshd, this
// machine. It remembers: a command runs in a real shell on a real terminal, so the working
// directory, variables, activated environments and running programs are still there at the next
// call. The package holds interfaces, options, results and errors, and imports only the standard
// library.
//
// Packages localbox, sshbox, kubebox and e2bbox make Sandboxes, and Places ([Place]), which make
// them of a [Spec]. Package sandbox/shellbox turns any place that can start a process into a
// Sandbox. Package sandbox/sandboxtest checks an implementation.
//
// # A program
//
// This function takes a box of any of these packages:
//
//	func greet(ctx context.Context, box sandbox.Sandbox) error {
//		box.Execute(ctx, "cd /tmp; X=1")
//		res, err := box.Execute(ctx, `read -p "name? " n; echo "hello $n, X is $X in $PWD"`)
//		if err == nil && res.State == sandbox.Waiting { // res.Output is "name? "
//			res, err = box.Input(ctx, "ann\n")
//		}
//		if err != nil {
//			return err // an exit status other than 0 is no error
//		}
//		fmt.Println(res.Output, res.ExitCode)
//		return nil
//	}
//
// # Commands
//
// [Session.Execute] runs a command and returns when it has ended ([Exited]), when it waits for an
// answer ([Waiting]), or when the caller wants to hear back earlier ([Running], by [Yield], [Idle]
// or [Until]). An unfinished command goes on with [Session.Input], [Session.Wait] or
// [Session.Interrupt]. A non-zero exit status is data, not an error.
//
// [Observe] wraps a Sandbox and tells an [Observer] what goes on in it. Three packages have such
// Observers: sandbox/recording writes files that asciinema plays, sandbox/tracing makes
// OpenTelemetry spans, and sandbox/logging writes records to a *slog.Logger.
//
// # Concurrency and lifetimes
//
// All methods may be called from several goroutines. A session runs one command at a time: a second
// Execute while one is unfinished gets [ErrBusy]. To run two commands at once, open two sessions. A
// context governs the whole call that it is given to, but not what the call returns: a session, a
// job or a connection lives on when that context ends. If the context ends, the call's error wraps
// both the context's Err and its Cause, so errors.Is finds context.Canceled or
// context.DeadlineExceeded. Close ends everything and frees every waiter with [ErrClosed]; the
// sessions and jobs of a sandbox end with it.
package sandbox

import (
	"context"
	"net"
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
	// Timeout, the command is killed; with Leave, only Timeout kills it. The Result then holds
	// what the command printed and its real exit status, and the error is ctx's or ErrTimeout. If
	// the sandbox does not answer for ten seconds meanwhile, because it is paused for instance,
	// Execute returns the same error and a Result in State Running. The command is killed when the
	// sandbox answers again.
	//
	// The Result is nil if the command was not started or the sandbox is gone.
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
	// call about it. If the last Result said that the command may go on (MayGoOn), and there was no
	// output or input since, Wait returns when the command prints something new and is quiet again,
	// when it is sure to wait, when it ends, or after Patience, which then counts from Wait's begin
	// and is 5 s by default. If there is nothing to wait for, it returns ErrIdle. If a command ends
	// and no call returns its Result, the next Execute drops that Result.
	//
	// The end of ctx ends only the waiting, unlike with Execute: the command goes on, and Wait
	// returns ctx's error and a Result in State Running with what the command has printed. Timeout
	// kills the command here too.
	Wait(ctx context.Context, opts ...ExecOption) (*Result, error)

	// Interrupt ends the unfinished command: with the interrupt key, as a person would, then with
	// SIGTERM and SIGKILL to the command and its descendants, until the shell is back. If no
	// command is unfinished, it returns ErrIdle. A sandbox that does not answer is as with Execute.
	//
	// Interrupt, Timeout and the end of ctx also end what the command has put into process sessions
	// of its own (setsid, nohup, a double fork). What earlier commands have started stays, as do
	// jobs and other sessions: a server that is to stay is started by Background, or by a command
	// that ends. A process that has cleared its environment (env -i, sudo) and left its parents is
	// not found. A process that has left its parents also stays if it was started within 20 ms
	// after the end of the command before; over a plain sshd, within the time of an answer.
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

	// Sessions returns the open sessions: the main one first, then in the order of their start.
	// After the program has attached to a sandbox, they include the sessions of the program before.
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
	// number of Runs may be under way at once. With Cmd.Terminal the program has a terminal, and
	// Cmd.Started tells its process id and takes signals for it.
	Run(ctx context.Context, cmd *Cmd) (exitCode int, err error)

	// CopyTo copies a file or directory from this machine into the sandbox. If boxPath is an
	// existing directory, the copy is made in it. Otherwise boxPath is the copy's new name, and its
	// parent must exist. A relative boxPath starts at the main session's directory, and a leading
	// "~/" at the user's home. A path that ends in a slash names a directory, or a link to one; if
	// a file is there, the error is ENOTDIR.
	//
	// Links stay links, holes stay holes, and files that have several names keep them. Permissions
	// and times are kept. If a tar other than GNU's makes the copy, times are whole seconds. The
	// copy belongs to the sandbox's user, and has no ACLs and extended attributes. CopyTo keeps the
	// set-user-ID, set-group-ID and sticky bits, CopyFrom only the sticky bits of directories.
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
	// the sandbox can make it write outside hostPath. Copying more than about 90,000 directories at
	// once is an error.
	CopyFrom(ctx context.Context, boxPath, hostPath string) error

	// Files returns the sandbox's files, for small things: read, write, look. Files itself does no
	// I/O; the methods of the result do.
	Files() Files

	// Dial connects to an address as seen from inside the sandbox. The networks are "tcp", "tcp4",
	// "tcp6", and "unix" with a path by the rules of CopyTo.
	Dial(ctx context.Context, network, address string) (net.Conn, error)

	// Listen listens on an address inside the sandbox. Accept of the listener returns the
	// connections that programs in the sandbox make to that address. So this program can serve a
	// sandbox that has no network of its own.
	//
	// The networks are "tcp", "tcp4" and "tcp6" with a port and an IP address, "localhost" or ""
	// (all addresses). If the port is 0, a free one is taken. Addr returns the port, and the
	// address, which may differ from the one asked for: an sshd without GatewayPorts listens on
	// loopback in place of all addresses. The network "unix" takes a path by the rules of CopyTo.
	// The socket belongs to the sandbox's user, nobody else but root may connect, and Close removes
	// it. For other networks the error is errors.ErrUnsupported.
	//
	// Any program inside that can reach the address may connect, so the service must offer only
	// what every program inside may have. An accepted connection may hold some MiB of unread data
	// in memory here, so bound how many you accept at once. Up to 128 connections wait for Accept,
	// in no promised order. Further ones wait at the sandbox's end; over a plain sshd they are
	// refused.
	//
	// ctx governs the call. The listener lives until its Close or the sandbox's. While the
	// connection to the sandbox is cut and made again, accepted connections fail with ErrCut, and
	// new ones wait. Connections have CloseWrite. Accept returns net.ErrClosed after the listener's
	// Close, ErrClosed after the sandbox's, and ErrLost when the sandbox is lost. Errors of Listen
	// are *net.OpError. If the cause is known, they wrap syscall.EADDRINUSE,
	// EADDRNOTAVAIL, EACCES, fs.ErrNotExist or *net.AddrError.
	Listen(ctx context.Context, network, address string) (net.Listener, error)

	// String returns the kind of sandbox: "LocalBox", "SSHBox", "DockerSSHBox", "KubeBox" or
	// "E2BBox". A Host of package shellbox that is not of this module has a name of its own.
	String() string
}

// A Result says how a command ended, or how far it has got.
type Result struct {
	State State

	// ExitCode is the exit status if State is Exited: 128+n if signal n ended the command.
	// Otherwise it is -1.
	ExitCode int

	// Awaits is what the command waits for if State is Waiting. Otherwise it is 0.
	Awaits InputKind

	// MayGoOn says, if State is Waiting, that the command may also go on by itself: something of it
	// runs, sleeps, or waits for others. It may work while it reads the terminal, or it may ask.
	// Input answers it all the same. Wait returns when something changes, or after Patience.
	MayGoOn bool

	// Output is what was printed since the last Result of this command. Lines end with "\n", and
	// control sequences are resolved. It is valid UTF-8: U+FFFD stands for bytes that are not. Tee
	// gets the bytes as they came.
	//
	// If a program rewrites lines that are still on the screen, such as a progress display, Output
	// has their last state. If a Result has shown such a line before it was rewritten, the next
	// Result has the line again, whole. Lines that have stayed the same do not come again. What has
	// scrolled off the screen is final. So is what was printed before the screen was first cleared;
	// what is drawn after that, and cleared again, is not in Output.
	Output string

	// Omitted is how many bytes are missing from the middle of Output. Its head and tail are kept.
	// The cuts are between runes and, if a line ends nearby, between lines.
	Omitted int64

	// OmittedAt is the offset in Output, in bytes, at which they are missing. If Omitted is 0, it
	// means nothing.
	OmittedAt int

	// OOM says that, while the command ran, the kernel killed a process of the sandbox because
	// memory had run out: the sandbox's (sshbox.Config.Memory) or the machine's. The command's exit
	// status need not show it: if a compiler was killed, make says 2. The kernel counts by sandbox:
	// commands that run at the same time all have OOM set. It is known in sandboxes that boxd
	// serves: a DockerSSHBox, a KubeBox, an E2BBox, and an SSHBox that has boxd. In others, and
	// where the kernel shows boxd no count, as under gVisor, OOM is always false.
	OOM bool

	// Unread is how many bytes of Input the command had not read when it ended. They are dropped,
	// and never executed.
	Unread int

	// FullScreen says that the program draws the whole screen (alternate screen). Screen shows it,
	// Output does not. If State is Exited, the program was killed and did not restore the screen.
	// Screen shows what it drew until the next command prints. Output has what was printed after
	// the program's last drawing.
	FullScreen bool

	// Matched is the text that Until matched; "" if Until did not end the call.
	Matched string

	// Cwd is the shell's directory when the shell is back at its prompt.
	Cwd string

	// Restarted says that the shell itself ended (exit, exec, set -e, kill). A fresh one took its
	// place, in Cwd. The same is true of a shell that could take no more commands and was killed:
	// it was stopped (suspend), say, or the command closed its descriptors. ExitCode may then be
	// the shell's, 137, in place of the command's.
	Restarted bool

	// Incomplete says that the shell wanted more than the command. A quote, a here-document or a
	// compound command was left open.
	Incomplete bool

	// Duration is the time since the command's start.
	Duration time.Duration
}

// A State says how far a command has got.
type State int

const (
	Exited  State = iota + 1 // the command has ended
	Waiting                  // it reads the terminal: Input answers it; see Result.MayGoOn
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
