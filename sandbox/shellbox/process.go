package shellbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// questionLimit bounds a question about processes. It includes the time to reconnect after a cut.
const questionLimit = 10 * time.Second

// asked calls ask, a question about processes, and logs its error. ask does not get the caller's
// context, because most answers are needed to kill a command whose context has ended.
func asked[A any](b *Box, question string, ask func(context.Context) (A, error)) (A, error) {
	ctx, cancel := context.WithTimeout(context.Background(), questionLimit)
	defer cancel()
	answer, err := ask(ctx)
	if err != nil {
		b.log.Debug("ask about processes", "question", question, "error", err)
	}
	return answer, err
}

// tree returns these processes and their descendants; nil if the host does not answer.
func (b *Box) tree(pids ...int) []proc.Process {
	ps, _ := asked(b, "tree", func(ctx context.Context) ([]proc.Process, error) {
		return b.processes.Tree(ctx, pids...)
	})
	return ps
}

// treeOf returns the process, nil if it no longer exists, and the result of tree.
func (b *Box) treeOf(pid int) (*proc.Process, []proc.Process) {
	ps := b.tree(pid)
	for i := range ps {
		if ps[i].PID == pid {
			return &ps[i], ps
		}
	}
	return nil, ps
}

// look looks at a session's shell, and at the threads that wait for its terminal.
func (b *Box) look(p Process) (proc.Look, error) {
	return asked(b, "look", func(ctx context.Context) (proc.Look, error) {
		return b.processes.Look(ctx, p)
	})
}

// discard drops the unread input of a terminal, and returns how many bytes that were.
func (b *Box) discard(p Process) int {
	n, _ := asked(b, "discard", func(ctx context.Context) (int, error) {
		return b.processes.Discard(ctx, p)
	})
	return n
}

// program returns the directory and the environment of a process; "" and nil if unknown.
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

// uptime returns the time since the start of the host; 0 if unknown.
func (b *Box) uptime() time.Duration {
	up, _ := asked(b, "uptime", b.processes.Uptime)
	return up
}

// send sends each process each signal, and returns how many signals were sent.
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

// settle waits until all that the process had printed before the call has been read. busy reports
// that the host's limit was reached first.
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
