package control

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/internal/test/testenv"
)

// The control shell and package procfs answer the same questions. These tests compare their answers
// about live processes.

// limit bounds the wait for what should happen at once.
const limit = testenv.Limit

// thisMachine answers with package procfs, as a Host on this machine does.
type thisMachine struct{}

func (thisMachine) Tree(_ context.Context, pids ...int) ([]proc.Process, error) {
	return procfs.Tree(pids...), nil
}
func (thisMachine) Alive(_ context.Context, pids ...int) ([]proc.Process, error) {
	return procfs.Alive(pids...), nil
}
func (thisMachine) Marked(_ context.Context, word string) ([]int, error) {
	return procfs.Marked(word), nil
}
func (thisMachine) ResetModes(_ context.Context, tty int) error {
	procfs.ResetModes(tty)
	return nil
}
func (thisMachine) Uptime(context.Context) (time.Duration, error) { return procfs.Uptime() }
func (thisMachine) Signal(_ context.Context, pids []int, signals ...proc.Signal) (int, error) {
	return procfs.Signal(pids, signals...)
}
func (thisMachine) Interrupt(_ context.Context, pid int) (bool, error) {
	return procfs.Interrupt(pid), nil
}
func (thisMachine) Look(_ context.Context, pid int) (proc.Look, error) {
	return procfs.Look(pid), nil
}
func (thisMachine) Discard(_ context.Context, pid int) (int, error) {
	return procfs.Discard(procfs.Look(pid).TTY), nil
}
func (thisMachine) Program(_ context.Context, pid int) (string, []string, error) {
	dir, env := procfs.Program(pid)
	return dir, env, nil
}

// processes has the methods of both.
type processes interface {
	Tree(ctx context.Context, pids ...int) ([]proc.Process, error)
	Alive(ctx context.Context, pids ...int) ([]proc.Process, error)
	Marked(ctx context.Context, word string) ([]int, error)
	ResetModes(ctx context.Context, tty int) error
	Uptime(context.Context) (time.Duration, error)
	Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error)
	Interrupt(ctx context.Context, pid int) (bool, error)
	Look(ctx context.Context, pid int) (proc.Look, error)
	Discard(ctx context.Context, pid int) (int, error)
	Program(ctx context.Context, pid int) (string, []string, error)
}

// awaitTree returns the tree of a process when wanted returns true for it, nothing in it runs, and
// it has been the same twice.
func awaitTree(t testing.TB, pid int, wanted func([]proc.Process) bool) []proc.Process {
	t.Helper()
	var last []proc.Process
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(10 * time.Millisecond) {
		ps := procfs.Tree(pid)
		if fmt.Sprint(sortedLines(ps)) == fmt.Sprint(sortedLines(last)) &&
			!slices.ContainsFunc(ps, func(p proc.Process) bool {
				return p.State == "R" || p.State == "D"
			}) && wanted(ps) {
			return ps
		}
		last = ps
	}
	t.Fatalf("not as wanted: %+v", sortedLines(last))
	return nil
}

// sortedLines returns the processes as text, by id. The two answers have other orders. Whether a
// process works or sleeps may change between two answers, also of a program that has just been
// started.
func sortedLines(ps []proc.Process) []string {
	var all []string
	for _, p := range ps {
		if p.State == "R" || p.State == "D" {
			p.State = "S"
		}
		all = append(all, fmt.Sprintf("%07d %+v", p.PID, p))
	}
	slices.Sort(all)
	return all
}

// hasNames returns a function that reports whether processes with these names are there.
func hasNames(names ...string) func([]proc.Process) bool {
	return func(ps []proc.Process) bool {
		var there []string
		for _, p := range ps {
			there = append(there, p.Name)
		}
		for _, name := range names {
			i := slices.Index(there, name)
			if i < 0 {
				return false
			}
			there = slices.Delete(there, i, i+1)
		}
		return true
	}
}

// liveTrees have all that the engine asks about: sleepers, threads, a zombie, pipelines, odd names.
var liveTrees = []struct {
	name, script string
	wanted       func([]proc.Process) bool
}{
	{"Prompt", ":", hasNames("bash")},
	// The first shell becomes a sleep, and its child ends only then: the shell would reap it.
	{"Zombie",
		`sh -c 'sh -c "until grep -q sleep /proc/\$PPID/comm; do :; done" & exec sleep 1000' & sleep 1000 | sleep 1000 & cat`,
		func(ps []proc.Process) bool {
			zombie := slices.ContainsFunc(ps, func(p proc.Process) bool {
				return p.State == "Z" && p.Name == "sh" && p.Image == ""
			})
			return zombie && hasNames("bash", "cat", "sleep", "sleep", "sleep")(ps)
		}},
	{"Pipeline", "sleep 1000 | (sleep 1000; true) | cat", hasNames("cat", "sleep", "sleep")},
	{"Threads", `python3 -c '
import threading, time, sys
for _ in range(12): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
sys.stdin.readline()'`, func(ps []proc.Process) bool {
		return hasNames("python3")(ps) && slices.ContainsFunc(ps, func(p proc.Process) bool {
			threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
			return len(threads) == 13
		})
	}},
	{"MainThreadEnded", `python3 -c '
import threading, time, ctypes
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)'`, func(ps []proc.Process) bool {
		return slices.ContainsFunc(ps, func(p proc.Process) bool {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
			return p.Name == "python3" && p.State == "S" && strings.Contains(string(stat), ") Z ")
		})
	}},
	{"Background", "python3 -c 'import threading, time\nfor _ in range(3): " +
		"threading.Thread(target=time.sleep, args=(1000,)).start()' & sleep 1000",
		hasNames("python3", "sleep")},
	{"Names", `s=$(command -v sleep); n() { ln -s "$s" "$1"; ./"$1" 1000 & }; n 'a) S 1 1 ('; n $'x\ny'; n '\n'; n ' b  c '; n ')'; cat`,
		hasNames("cat", "a) S 1 1 (", "x", `\n`, " b  c ", ")")},
}
