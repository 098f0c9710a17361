package shellbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// Processes answers questions about the processes of a host, and sends them signals. A Host may
// implement it. For any other Host the engine asks a plain sh, which reads /proc with builtins. It
// cannot Settle, which only a SettledProcess does then, and its Look knows less than the kernel
// tells a program:
//
//   - It asks the process and its descendants, but nobody else who has the terminal open.
//   - It cannot read what a poll, select or epoll asks for. Such a thread waits for the terminal if that is in raw mode and open as one of its
//     descriptors 0 to 2; for the terminal alone if it polls one descriptor without a time limit. In cooked mode only a busybox ash waits so.
//   - A relay is a process that waits for a terminal in raw mode while a descendant has another one. The masters that a process holds tell nothing.
//   - It knows the system calls of x86-64, arm64, riscv64 and loong64, not those of their 32-bit programs; of others only read.
//   - Look.Modes are known only if somebody may wait for the terminal, because to ask for them starts a process. Terminals are those of its own /dev/pts.
//   - Where system calls are hidden and the functions of the kernel are not (Yama), it goes by these: a thread in wait_woken reads its terminal, and a
//     program that reads some pipe reads its standard input, if that is one.
//
// Discard drops what has reached the terminal. It is for a terminal that nobody reads: for a moment
// that is in raw mode.
//
// All methods may be called from several goroutines, and return when ctx ends; the engine gives
// each call ten seconds.
//
// An error means that there is no answer: the host is gone, or ctx has ended. The host may have
// done what was asked nevertheless. It is no error if something cannot be found out, because a
// process has ended, belongs to another user, or is on a system without /proc: the answer leaves it
// out. The engine does not guess then: a program about which the answer says nothing is not
// reported as waiting for input.
type Processes interface {
	// Tree returns the processes of these ids and all their descendants, each once and none before
	// its parent. Processes of another user are included, with as much as the host may see of them.
	Tree(ctx context.Context, pids ...int) ([]proc.Process, error)

	// Alive returns those of these processes that exist, zombies too. Image and Name may be
	// missing. Where there is no /proc, only PID and State are set, and State is "S".
	Alive(ctx context.Context, pids ...int) ([]proc.Process, error)

	// Marked returns the ids of the processes that had word somewhere in their environment when
	// they executed their program. An empty word marks none.
	Marked(ctx context.Context, word string) ([]int, error)

	// Program returns the working directory of a process, and the environment, "NAME=value", that
	// it was executed with. "" and nil: unknown.
	Program(ctx context.Context, pid int) (dir string, env []string, err error)

	// Look looks at a process of this host's Start, on a terminal, and at whoever waits for that
	// terminal's input.
	Look(ctx context.Context, p Process) (proc.Look, error)

	// Discard drops the input of the terminal of p that no program has read: what was written to
	// Stdin before the call, wherever it is on its way, and what the terminal itself holds, an
	// unfinished line too. It returns how many bytes these were.
	Discard(ctx context.Context, p Process) (int, error)

	// ResetModes puts the modes of the terminal of that number, which is Process.TTY, in order, as
	// stty sane -onlcr -echoctl does. A terminal that cannot be opened stays as it is.
	ResetModes(ctx context.Context, tty int) error

	// Uptime returns the time since the start of the machine, on the clock of Process.Start. 0:
	// unknown.
	Uptime(ctx context.Context) (time.Duration, error)

	// Signal sends each process each signal, in the order given, and returns how many were sent. A
	// process that has ended or may not be signalled gets none, and is no error; an unknown signal
	// is one. Ids below 1 are left out.
	Signal(ctx context.Context, pids []int, signals ...proc.Signal) (sent int, err error)

	// Interrupt sends SIGINT to the foreground process group of the terminal of p, as the interrupt
	// key does. To ask for that group and to send the signal afterwards would be too late for a
	// loop of short programs. false: nobody tells that group, or it may not be signalled.
	Interrupt(ctx context.Context, p Process) (sent bool, err error)

	// Settle waits until the program has got all that was written to its Stdin before the call, and
	// all that the program had printed by then has been read from its Stdout. p is a Process of
	// this host's Start, on a terminal. The implementation bounds the wait to seconds: a program
	// may never read its input, and may print without end. busy says that it reached the bound.
	// Settle waits for no other program.
	//
	// The engine calls Look and then Settle. So, when Look shows that the program waits, the engine
	// has the program's output before the next look.
	Settle(ctx context.Context, p Process) (busy bool, err error)
}

// A SettledProcess is a Process of a Host that implements no Processes, but can tell when output
// has come. Without it a program may be found to wait a moment before what it has printed is there,
// if that comes another, slower way than the plain sh's answers.
type SettledProcess interface {
	Process
	// Settle waits until all that the program had printed on its terminal before the call has come,
	// so that a Read of Stdout gets it, for a second or so at most. busy says that it was not
	// enough.
	Settle(ctx context.Context) (busy bool, err error)
}
