package shellbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// questionLimit bounds a question about processes, with the time that a cut connection takes to be
// made again.
const questionLimit = 10 * time.Second

// asked returns the answer to a question about processes. If the host has none, that is logged and
// not fatal. The question does not end with the caller's context, because the answer is mostly
// needed to kill the caller's command.
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
	ps, _ := asked(b, "tree", func(ctx context.Context) ([]proc.Process, error) {
		return b.processes.Tree(ctx, pids...)
	})
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

// look looks at a session's shell, and at what waits for its terminal.
func (b *Box) look(p Process) (proc.Look, error) {
	return asked(b, "look", func(ctx context.Context) (proc.Look, error) {
		return b.processes.Look(ctx, p)
	})
}

// discard drops the input of a terminal, and returns how much that was.
func (b *Box) discard(p Process) int {
	n, _ := asked(b, "discard", func(ctx context.Context) (int, error) {
		return b.processes.Discard(ctx, p)
	})
	return n
}

// program returns the directory and the environment of a process; "" and nil: unknown.
func (b *Box) program(pid int) (dir string, env []string) {
	asked(b, "program", func(ctx context.Context) (_ struct{}, err error) {
		dir, env, err = b.processes.Program(ctx, pid)
		return struct{}{}, err
	})
	return dir, env
}

func (b *Box) resetModes(tty int) {
	asked(b, "reset modes", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.processes.ResetModes(ctx, tty)
	})
}

// uptime returns the time since the start of the host; 0: unknown.
func (b *Box) uptime() time.Duration {
	up, _ := asked(b, "uptime", b.processes.Uptime)
	return up
}

// send sends the processes the signals, and returns how many were sent.
func (b *Box) send(pids []int, signals ...proc.Signal) (int, error) {
	return asked(b, "signal", func(ctx context.Context) (int, error) {
		return b.processes.Signal(ctx, pids, signals...)
	})
}

// interrupt sends SIGINT to the foreground of a terminal, and reports whether it was sent.
func (b *Box) interrupt(p Process) bool {
	sent, _ := asked(b, "interrupt", func(ctx context.Context) (bool, error) {
		return b.processes.Interrupt(ctx, p)
	})
	return sent
}

// settle waits until what the process has printed up to now has been read; busy: that has not come
// about.
func (b *Box) settle(p Process) (busy bool) {
	busy, _ = asked(b, "settle", func(ctx context.Context) (bool, error) {
		return b.processes.Settle(ctx, p)
	})
	return busy
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
