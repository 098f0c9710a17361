package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"golang.org/x/sys/unix"
)

// Tree returns the processes and all their descendants, each once and none before its parent.
func Tree(pids ...int) []proc.Process {
	r := newReader()
	var parents map[int][]int
	self := strconv.Itoa(os.Getpid())
	// a kernel without CONFIG_PROC_CHILDREN
	if unix.Access("/proc/self/task/"+self+"/children", unix.F_OK) != nil {
		parents = r.parents()
	}
	return r.tree(pids, parents)
}

// parents returns all processes by their parents.
func (r *reader) parents() map[int][]int {
	parents := map[int][]int{}
	for _, pid := range numbers("/proc") {
		if s, ok := r.stat(pid); ok {
			parents[s.Parent] = append(parents[s.Parent], pid)
		}
	}
	return parents
}

// tree goes through the processes breadth first. parents says who descends from whom; if it is nil,
// the kernel is asked.
func (r *reader) tree(pids []int, parents map[int][]int) []proc.Process {
	var ps []proc.Process
	seen := map[int]bool{}
	for len(pids) > 0 {
		var next []int
		for _, pid := range pids {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			s, ok := r.stat(pid)
			if !ok {
				continue
			}
			ps = append(ps, r.withImage(s.Process))
			if parents != nil {
				next = append(next, parents[pid]...)
				continue
			}
			dir := "/proc/" + strconv.Itoa(pid)
			for _, tid := range s.threads(dir) {
				next = r.children(next, dir+"/task/"+strconv.Itoa(tid))
			}
		}
		pids = next
	}
	return ps
}

// children appends the children of the thread with that directory.
func (r *reader) children(pids []int, dir string) []int {
	list, _ := r.read(dir + "/children")
	for word := range bytes.FieldsSeq(list) {
		if pid, err := strconv.Atoi(string(word)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parseCall returns the system call in the words of /proc/PID/syscall; nil if there is none:
// "running", or -1 in place of its number.
func parseCall(words []string) *sysCall {
	call := new(sysCall)
	if len(words) <= len(call.Args) {
		return nil
	}
	var err error
	if call.Number, err = strconv.Atoi(words[0]); err != nil || call.Number < 0 {
		return nil
	}
	for i := range call.Args {
		if call.Args[i], err = strconv.ParseUint(words[1+i], 0, 64); err != nil {
			return nil
		}
	}
	return call
}

// word returns the file's word of that index, "" if there is none.
func (r *reader) word(path string, i int) string {
	b, _ := r.read(path)
	if words := bytes.Fields(b); i < len(words) {
		return string(words[i])
	}
	return ""
}

// Alive returns those of the processes that exist, zombies too.
func Alive(pids ...int) []proc.Process {
	r := newReader()
	_, procErr := r.read("/proc/self/stat")
	var ps []proc.Process
	for _, pid := range pids {
		if procErr != nil {
			if pid > 0 && unix.Kill(pid, 0) == nil {
				ps = append(ps, proc.Process{PID: pid, State: "S"})
			}
		} else if s, ok := r.stat(pid); ok {
			ps = append(ps, s.Process)
		}
	}
	return ps
}

// MarkedTree returns, as far as they have not ended, the processes that are Marked with word, what
// descends from them, and those of before: for whoever ends them, since one that is ending has no
// environment any more while it still has its files.
func MarkedTree(word string, before []proc.Process) []proc.Process {
	var pids []int
	for _, p := range before {
		pids = append(pids, p.PID)
	}
	left := proc.Left(before, Alive(pids...))
	pids = Marked(word)
	for _, p := range left {
		pids = append(pids, p.PID)
	}
	return slices.DeleteFunc(Tree(pids...), func(p proc.Process) bool { return p.Ended() })
}

// Marked returns the processes that had word in their environment when they executed their program.
func Marked(word string) []int {
	if word == "" {
		return nil // every environment contains the empty word
	}
	r := newReader()
	var found []int
	for _, pid := range numbers("/proc") {
		env, whole, shown := r.environ(pid)
		for begin := time.Now(); shown && !whole &&
			time.Since(begin) < execLimit; env, whole, shown = r.environ(pid) {
			time.Sleep(100 * time.Microsecond)
		}
		if shown && bytes.Contains(env, []byte(word)) {
			found = append(found, pid)
		}
	}
	return found
}

// execLimit is how long the end of an exec is waited for. It takes less than a millisecond, on a
// very busy machine some hundred.
const execLimit = 500 * time.Millisecond

// environ returns the environment of a process; not the whole of it if the process is in the middle
// of an exec. shown: it is not gone, nor hidden from us.
func (r *reader) environ(pid int) (env []byte, whole, shown bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	var err error
	var s stat
	look := func() {
		if env, err = r.read(dir + "/environ"); err == nil {
			env = bytes.Clone(env)
			s, shown = r.stat(pid)
		}
	}
	if look(); errors.Is(err, os.ErrPermission) {
		as(dir, look)
	}
	if len(env) == 0 { // who sleeps does not execute, and has none indeed
		return nil, s.kernel || s.Ended() || s.State == "S" || s.State == "T", shown
	}
	return env, s.envEnd == 0 || uint64(len(env)) == s.envEnd-s.envStart, shown
}

// Uptime asks the kernel's clock, from which start times come; lxcfs replaces /proc/uptime by the
// container's.
func Uptime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// Signal sends each process each signal, and returns how many were sent. The error says that there
// is no such signal; then none was sent.
func Signal(pids []int, signals ...proc.Signal) (sent int, err error) {
	numbers := make([]unix.Signal, len(signals))
	for i, sig := range signals {
		if n, err := strconv.ParseUint(string(sig), 10, 8); err == nil {
			numbers[i] = unix.Signal(n)
		} else if numbers[i] = unix.SignalNum("SIG" + string(sig)); numbers[i] == 0 {
			return 0, fmt.Errorf("no signal: %q", sig)
		}
	}
	for _, pid := range pids {
		if pid <= 0 { // kill takes these for process groups, and for all processes
			continue
		}
		for _, sig := range numbers {
			if unix.Kill(pid, sig) == nil {
				sent++
			}
		}
	}
	return sent, nil
}

// Interrupt sends SIGINT to the foreground process group of the terminal of the process, and
// reports whether it was sent.
func Interrupt(pid int) bool {
	s, ok := newReader().stat(pid)
	return ok && s.Foreground > 1 && unix.Kill(-s.Foreground, unix.SIGINT) == nil
}
