package shellbox

import (
	"context"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// questionLimit bounds a question about processes, with the time that a cut connection takes to be made again.
const questionLimit = 10 * time.Second

// asked returns the answer to a question about processes. If the host has none, that is logged and not fatal. The question does not end with the
// caller's context, because the answer is mostly needed to kill the caller's command.
func asked[A any](b *Box, question string, ask func(context.Context) (A, error)) (A, error) {
	ctx, cancel := context.WithTimeout(context.Background(), questionLimit)
	defer cancel()
	answer, err := ask(ctx)
	if err != nil {
		b.log.Debug("ask about processes", "question", question, "error", err)
	}
	return answer, err
}

// tree returns these processes and their descendants; nil if the host does not tell.
func (b *Box) tree(pids ...int) []proc.Process {
	ps, _ := asked(b, "tree", func(ctx context.Context) ([]proc.Process, error) { return b.processes.Tree(ctx, pids...) })
	return ps
}

// treeOf returns what tree returns, and the process itself; nil if that process no longer exists.
func (b *Box) treeOf(pid int) (*proc.Process, []proc.Process) {
	ps := b.tree(pid)
	for i := range ps {
		if ps[i].PID == pid {
			return &ps[i], ps
		}
	}
	return nil, ps
}

func (b *Box) modes(tty int) proc.Modes {
	m, _ := asked(b, "modes", func(ctx context.Context) (proc.Modes, error) { return b.processes.Modes(ctx, tty) })
	return m
}

func (b *Box) resetModes(tty int) {
	asked(b, "reset modes", func(ctx context.Context) (struct{}, error) { return struct{}{}, b.processes.ResetModes(ctx, tty) })
}

// uptime returns the time since the start of the host; 0: unknown.
func (b *Box) uptime() time.Duration {
	up, _ := asked(b, "uptime", b.processes.Uptime)
	return up
}

// send sends the processes the signals, and returns how many were sent.
func (b *Box) send(pids []int, signals ...proc.Signal) (int, error) {
	return asked(b, "signal", func(ctx context.Context) (int, error) { return b.processes.Signal(ctx, pids, signals...) })
}

// settle waits until what the process has printed up to now has been read.
func (b *Box) settle(p Process) {
	asked(b, "settle", func(ctx context.Context) (struct{}, error) { return struct{}{}, b.processes.Settle(ctx, p) })
}

// reads reports whether the thread is blocked in a read of its terminal. Some systems hide system calls (Yama), but not where in the kernel
// a thread is blocked.
func reads(t *proc.Thread) bool { return t.Reads || t.Hidden && t.Wchan == "wait_woken" }

// polls reports whether the thread is blocked in poll, select or epoll_wait.
func polls(t *proc.Thread) bool {
	return strings.Contains(t.Wchan, "poll") || strings.Contains(t.Wchan, "select")
}

// pollsOne reports whether the thread is blocked in poll of one descriptor, without a time limit. The builtin read of busybox ash
// waits so for the terminal.
func pollsOne(t *proc.Thread) bool {
	return polls(t) && t.Call != nil && t.Call.Args[1] == 1 && t.Call.Args[2] == 0xffffffff
}

// unseen reports whether nothing shows what the thread waits for.
func unseen(t *proc.Thread) bool { return t.Hidden && t.Wchan == "" }

// readOf returns the thread's read of its terminal, with descriptor, buffer and size. A shell's read at its prompt is the same each time. The zero
// Call means that the thread does not read.
func readOf(t *proc.Thread) (read proc.Call) {
	if reads(t) && t.Call != nil {
		read.Number = t.Call.Number
		copy(read.Args[:3], t.Call.Args[:3])
	}
	return read
}

// isShell reports whether a process of that name is an interactive shell that takes our lines.
func isShell(name string) bool {
	switch strings.TrimPrefix(name, "-") {
	case "bash", "sh", "dash", "ash", "busybox", "ksh", "mksh", "zsh":
		return true
	}
	return false
}

// ended reports whether the process has ended: it is a zombie (Z), or the kernel is removing it (X).
func ended(p *proc.Process) bool {
	return strings.HasPrefix(p.State, "Z") || strings.HasPrefix(p.State, "X")
}

func pidsOf(ps []proc.Process) []int {
	pids := make([]int, len(ps))
	for i, p := range ps {
		pids[i] = p.PID
	}
	return pids
}

func merge(a, b []proc.Process) []proc.Process {
	seen := map[int]bool{}
	var all []proc.Process
	for _, p := range append(append([]proc.Process(nil), a...), b...) {
		if !seen[p.PID] {
			seen[p.PID] = true
			all = append(all, p)
		}
	}
	return all
}

func without(ps []proc.Process, pid int) []proc.Process {
	var rest []proc.Process
	for _, p := range ps {
		if p.PID != pid {
			rest = append(rest, p)
		}
	}
	return rest
}
