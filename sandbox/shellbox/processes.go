package shellbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// Processes answers questions about the processes of a host, and sends them signals. A Host may implement it. For any other Host the engine asks
// a plain sh, which reads /proc with builtins and cannot Settle.
//
// All methods may be called from several goroutines, and return when ctx ends; the engine gives each call ten seconds.
//
// An error means that there is no answer: the host is gone, or ctx has ended. The host may have done what was asked nevertheless. It is no error if
// something cannot be found out, because a process has ended, belongs to another user, or is on a system without /proc: the answer leaves it
// out. The engine does not guess then: a program about which the answer says nothing is not reported as waiting for input.
type Processes interface {
	// Tree returns the processes of these ids and all their descendants, each once and none before its parent. Processes of another user are
	// included, with as much as the host may see of them.
	Tree(ctx context.Context, pids ...int) ([]proc.Process, error)

	// Alive returns those of these processes that exist, zombies too. Image, Name and Threads may be missing. Where there is no /proc, only
	// PID and State are set, and State is "S".
	Alive(ctx context.Context, pids ...int) ([]proc.Process, error)

	// Marked returns the ids of the processes that had word somewhere in their environment when they executed their program.
	// An empty word marks none.
	Marked(ctx context.Context, word string) ([]int, error)

	// Modes returns the modes of the terminal of that number, which is Process.TTY.
	Modes(ctx context.Context, tty int) (proc.Modes, error)

	// ResetModes puts the terminal's modes in order, as stty sane -onlcr -echoctl does. A terminal that cannot be opened stays as it is.
	ResetModes(ctx context.Context, tty int) error

	// Uptime returns the time since the start of the machine, on the clock of Process.Start. 0: unknown.
	Uptime(ctx context.Context) (time.Duration, error)

	// Signal sends each process each signal, in the order given, and returns how many were sent. A process that has ended or may not be
	// signalled gets none, and is no error; an unknown signal is one. Ids below 1, which the kernel takes for groups of processes, are left out.
	Signal(ctx context.Context, pids []int, signals ...proc.Signal) (sent int, err error)

	// Settle waits until the program has got all that was written to its Stdin before the call, and all that the program had printed
	// by then has been read from its Stdout. p is a Process of this host's Start, on a terminal. The implementation bounds the wait to
	// seconds; reaching the bound is no error, for a program may never read its input, and may print without end. Settle waits for no
	// other program.
	//
	// The engine calls Tree and then Settle. So, when Tree shows that the program waits, the engine has the program's output before the next look.
	Settle(ctx context.Context, p Process) error
}
