// Package processes asks a host about its processes and ends them. Its questions do not take the
// caller's context, because most answers are needed to kill a command whose context has ended. Each
// question has a limit of its own. A question without an answer is logged, and its answer is the
// zero value.
//
// It knows a session and a command only by process ids, marks and times.
package processes

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/printable"
)

// A Host is the host whose processes are asked about. Its methods may be called concurrently.
type Host struct {
	processes hostapi.Processes
	oom       hostapi.OOMTeller // nil: the host does not tell
	log       *slog.Logger
	clock     clock
}

// New returns the Host of p. oom may be nil.
func New(p hostapi.Processes, oom hostapi.OOMTeller, log *slog.Logger) *Host {
	return &Host{processes: p, oom: oom, log: log}
}

// QuestionLimit bounds a question. It includes the time to reconnect after a cut.
const QuestionLimit = 10 * time.Second

// asked calls ask, and logs its error.
func asked[A any](h *Host, question string, ask func(context.Context) (A, error)) (A, error) {
	ctx, cancel := context.WithTimeout(context.Background(), QuestionLimit)
	defer cancel()
	answer, err := ask(ctx)
	if err != nil {
		h.log.Debug("ask about processes", "question", question, "error", err)
	}
	return answer, err
}

// Tree returns these processes and their descendants; nil if the host does not answer.
func (h *Host) Tree(pids ...int) []proc.Process {
	ps, _ := asked(h, "tree", func(ctx context.Context) ([]proc.Process, error) {
		return h.processes.Tree(ctx, pids...)
	})
	return ps
}

// Look looks at a session's shell, and at the threads that wait for its terminal.
func (h *Host) Look(p hostapi.Process) (proc.Look, error) {
	return asked(h, "look", func(ctx context.Context) (proc.Look, error) {
		return h.processes.Look(ctx, p)
	})
}

// Shell describes a session's shell that has just answered a line. It returns the zero value if the
// host does not tell.
func (h *Host) Shell(p hostapi.Process) proc.Shell {
	teller, ok := h.processes.(hostapi.ShellTeller)
	if !ok {
		return proc.Shell{}
	}
	shell, _ := asked(h, "shell", func(ctx context.Context) (proc.Shell, error) {
		return teller.Shell(ctx, p)
	})
	return shell
}

// Discard drops the unread input of a terminal, and returns how many bytes that were.
func (h *Host) Discard(p hostapi.Process) int {
	n, _ := asked(h, "discard", func(ctx context.Context) (int, error) {
		return h.processes.Discard(ctx, p)
	})
	return n
}

// AllRead reports whether the host knows that, when the terminal had shown that many bytes,
// programs had read all that was typed.
func (h *Host) AllRead(p hostapi.Process, shown int64) bool {
	teller, ok := h.processes.(hostapi.ReadTeller)
	if !ok {
		return false
	}
	all, _ := asked(h, "all read", func(ctx context.Context) (bool, error) {
		return teller.AllRead(ctx, p, shown), nil
	})
	return all
}

// Program returns the directory and the environment of a process; "" and nil if unknown.
func (h *Host) Program(pid int) (dir string, env []string) {
	asked(h, "program", func(ctx context.Context) (_ struct{}, err error) {
		dir, env, err = h.processes.Program(ctx, pid)
		return struct{}{}, err
	})
	return dir, env
}

// resetModes puts the terminal with that number in order.
func (h *Host) resetModes(tty int) {
	asked(h, "reset modes", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.processes.ResetModes(ctx, tty)
	})
}

// alive returns those of ps that have not ended. Zombies have ended.
func (h *Host) alive(ps []proc.Process) []proc.Process {
	if len(ps) == 0 {
		return nil
	}
	there, _ := asked(h, "alive", func(ctx context.Context) ([]proc.Process, error) {
		return h.processes.Alive(ctx, pidsOf(ps)...)
	})
	return proc.Left(ps, there)
}

// marked returns the ids of the processes that have mark in their environment.
func (h *Host) marked(mark string) []int {
	pids, _ := asked(h, "marked", func(ctx context.Context) ([]int, error) {
		return h.processes.Marked(ctx, mark)
	})
	return pids
}

// uptime returns the time since the start of the host; 0 if unknown.
func (h *Host) uptime() time.Duration {
	up, _ := asked(h, "uptime", h.processes.Uptime)
	return up
}

// Send sends each process each signal, and returns how many signals were sent.
func (h *Host) Send(pids []int, signals ...proc.Signal) (int, error) {
	return asked(h, "signal", func(ctx context.Context) (int, error) {
		return h.processes.Signal(ctx, pids, signals...)
	})
}

// Interrupt sends SIGINT to the foreground of a terminal, and reports whether it was sent.
func (h *Host) Interrupt(p hostapi.Process) bool {
	sent, _ := asked(h, "interrupt", func(ctx context.Context) (bool, error) {
		return h.processes.Interrupt(ctx, p)
	})
	return sent
}

// Settle waits until everything has been read that p had printed before the call. busy reports that
// the host's limit was reached first.
func (h *Host) Settle(p hostapi.Process) (busy bool) {
	busy, _ = asked(h, "settle", func(ctx context.Context) (bool, error) {
		return h.processes.Settle(ctx, p)
	})
	return busy
}

// Answers reports whether the host answers a question in time. An error counts: a host that is lost
// returns one.
func (h *Host) Answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, QuestionLimit)
	defer cancel()
	h.processes.Uptime(ctx)
	return ctx.Err() == nil
}

// TellsOOM reports whether the host tells of processes that were killed because memory had run out.
func (h *Host) TellsOOM() bool { return h.oom != nil }

// OOMKilled reports whether the host knows that the kernel has killed a process of p because memory
// had run out. since and shown are as in hostapi.OOMTeller.
func (h *Host) OOMKilled(p hostapi.Process, since, shown int64) bool {
	if h.oom == nil {
		return false
	}
	n, _ := asked(h, "oom", func(ctx context.Context) (int64, error) {
		return h.oom.OOMKills(ctx, p, since, shown)
	})
	return n > 0
}

func pidsOf(ps []proc.Process) []int {
	pids := make([]int, len(ps))
	for i, p := range ps {
		pids[i] = p.PID
	}
	return pids
}

// Merge returns the processes of a and those of b that are not in a.
func Merge(a, b []proc.Process) []proc.Process {
	seen := map[int]bool{}
	var all []proc.Process
	for _, p := range slices.Concat(a, b) {
		if !seen[p.PID] {
			seen[p.PID] = true
			all = append(all, p)
		}
	}
	return all
}

// Name returns the name of a program for people.
func Name(p proc.Process) string { return cmp.Or(printable.Line(p.Name), "unknown") }

// Without returns ps without the process of that id.
func Without(ps []proc.Process, pid int) []proc.Process {
	return slices.DeleteFunc(slices.Clone(ps), func(p proc.Process) bool { return p.PID == pid })
}
