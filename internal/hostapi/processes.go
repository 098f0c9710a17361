package hostapi

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// Processes answers questions about the processes of a host, and sends them signals. A
// shellbox.Host may implement it. For any other Host the engine runs the control shell: a plain sh,
// which reads /proc with builtins. The control shell has no Settle: the process has it, if it is a
// SettledProcess. Its Look knows less than system calls tell a program:
//
//   - It looks at the process and its descendants only, not at others that have the terminal open.
//   - It cannot read what a poll, select or epoll asks for. It assumes that a thread in one of them
//     waits for the terminal if the terminal is in raw mode and open as a descriptor from 0 to 2,
//     and waits for nothing else if it polls one descriptor without a time limit. In cooked mode
//     only a busybox ash waits so.
//   - It takes a process for a relay if the process waits for a terminal in raw mode and a
//     descendant has another terminal. The masters that a process holds tell it nothing.
//   - It knows the system calls of x86-64, arm64, riscv64 and loong64, but not those of 32-bit
//     programs there. On other architectures it knows only read.
//   - Look.Modes are known only if something may be waiting for the terminal, because to read them
//     takes a process. Terminals are those of its own /dev/pts.
//   - Where system calls are hidden but the kernel's functions are not (Yama), it goes by the
//     functions: a thread in wait_woken reads its terminal, and a program that reads a pipe reads
//     its standard input, if that is one.
//   - Discard drops what has reached the terminal. It is only for a terminal that no program reads,
//     because it puts the terminal in raw mode for a moment.
//
// All methods may be called concurrently, and return when ctx ends. The engine gives each call ten
// seconds.
//
// An error means that there is no answer, because the host is gone or ctx has ended. The host may
// have done what was asked nevertheless. It is no error if something cannot be found out because a
// process has ended, belongs to another user, or is on a system without /proc: the answer leaves it
// out. The engine then does not guess: it does not report that a program waits for input if the
// answer says nothing about that program.
type Processes interface {
	// Tree returns the processes with these ids and all their descendants, each once, and each
	// after its parent. Processes of another user are included, with what the host may see of them.
	Tree(ctx context.Context, pids ...int) ([]proc.Process, error)

	// Alive returns those of these processes that exist, zombies included. Image, Name, Caught and
	// Blocked may be missing. Where there is no /proc, only PID and State are set, and State is
	// "S".
	Alive(ctx context.Context, pids ...int) ([]proc.Process, error)

	// Marked returns the ids of the processes that had word somewhere in their environment when
	// they executed their program. For an empty word it returns none.
	Marked(ctx context.Context, word string) ([]int, error)

	// Program returns the working directory of a process, and the environment, "NAME=value", that
	// it was executed with. If they are unknown, it returns "" and nil.
	Program(ctx context.Context, pid int) (dir string, env []string, err error)

	// Look looks at a process on a terminal, and at all threads that wait for that terminal's
	// input.
	Look(ctx context.Context, p Process) (proc.Look, error)

	// Discard drops the input of the terminal of p that no program has read: what was written to
	// Stdin before the call and is still on its way, and what the terminal holds, an unfinished
	// line included. It returns the number of bytes.
	Discard(ctx context.Context, p Process) (int, error)

	// ResetModes sets the modes of the terminal with that number, which is Process.TTY, as stty
	// sane -onlcr -echoctl does. A terminal that cannot be opened stays as it is.
	ResetModes(ctx context.Context, tty int) error

	// Uptime returns the time since the start of the machine, on the clock of Process.Start, or 0
	// if it is unknown.
	Uptime(ctx context.Context) (time.Duration, error)

	// Signal sends each process each signal, in the given order, and returns how many were sent. It
	// skips a process that has ended or may not be signalled. An id below -1 is that of a process
	// group, as for kill(2); an earlier boxd skips it. 0 and -1 are skipped. An unknown signal is
	// an error.
	Signal(ctx context.Context, pids []int, signals ...proc.Signal) (sent int, err error)

	// Interrupt sends SIGINT to the foreground process group of the terminal of p, as the interrupt
	// key does. It does both in one call: in a loop of short programs, the group would change
	// between two calls. sent is false if the group is unknown or may not be signalled.
	Interrupt(ctx context.Context, p Process) (sent bool, err error)

	// Settle waits until the program has received all that was written to its Stdin before the
	// call, and until all that the program had printed by then has been read from its Stdout. p is
	// on a terminal. The implementation bounds the wait to seconds, because a program may never
	// read its input, and may print without end. busy reports that the bound was reached. Settle
	// waits for no other program.
	//
	// The engine calls Look and then Settle. So if Look shows that the program waits, the engine
	// has the program's output before the next Look.
	Settle(ctx context.Context, p Process) (busy bool, err error)
}
