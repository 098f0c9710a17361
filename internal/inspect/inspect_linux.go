package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
	"golang.org/x/sys/unix"
)

// Tree returns the processes and all their descendants, each once and none before its parent.
func Tree(pids ...int) []proc.Process {
	r := newReader()
	var parents map[int][]int
	self := strconv.Itoa(os.Getpid())
	if unix.Access("/proc/self/task/"+self+"/children", unix.F_OK) != nil { // a kernel without CONFIG_PROC_CHILDREN
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

// tree goes through the processes breadth first. parents says who descends from whom; if it is nil, the kernel is asked.
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
			p := s.Process
			foreground := p.Group == p.Foreground
			next = append(next, parents[pid]...)
			if parents == nil || foreground {
				dir := "/proc/" + strconv.Itoa(pid)
				for _, tid := range s.threads(dir) {
					if parents == nil {
						next = r.children(next, dir+"/task/"+strconv.Itoa(tid))
					}
					if !foreground {
						continue
					}
					if t, ok := r.thread(dir, tid, p.TTY); ok {
						p.Threads = append(p.Threads, t)
					}
				}
			}
			ps = append(ps, p)
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

// thread returns the thread tid of the process with that directory, unless it has just ended.
func (r *reader) thread(process string, tid, tty int) (t proc.Thread, ok bool) {
	dir := process + "/task/" + strconv.Itoa(tid)
	t = proc.Thread{ID: tid, Wchan: r.word(dir+"/wchan", 0)}
	if t.Wchan == "0" {
		t.Wchan = ""
	}
	line, err := r.read(dir + "/syscall")
	words := strings.Fields(string(line))
	switch {
	case errors.Is(err, unix.ESRCH), err != nil && unix.Access(dir, unix.F_OK) != nil:
		return t, false
	case len(words) == 0:
		t.Hidden = true
	default:
		t.Call = parseCall(words)
		t.Reads = t.Call != nil && (readsTerminal(process, t.Call, tty) || pollsTerminal(process, t.Call, tty))
	}
	t.Turns, _ = strconv.ParseInt(r.word(dir+"/schedstat", 2), 10, 64)
	return t, true
}

// parseCall returns the system call in the words of /proc/PID/syscall; nil if there is none: "running", or -1 in place of its number.
func parseCall(words []string) *proc.Call {
	call := new(proc.Call)
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

// readsTerminal reports whether the system call is a read of the terminal.
func readsTerminal(process string, call *proc.Call, tty int) bool {
	fd, ok := readsFrom(call)
	return ok && isTerminal(process, fd, tty)
}

// pollsTerminal reports whether the system call waits, without a time limit, for the terminal alone. busybox ash waits so in its builtin read, in a
// script too. The descriptor is found only in the memory of the process.
func pollsTerminal(process string, call *proc.Call, tty int) bool {
	address, descriptors, timeout := call.Args[0], call.Args[1], call.Args[2]
	switch {
	case descriptors != 1 || address > 1<<63-1:
		return false
	case call.Number == unix.SYS_PPOLL && timeout == 0:
	case runtime.GOARCH == "amd64" && call.Number == 7 && timeout == 0xffffffff: // poll; newer architectures have only ppoll
	default:
		return false
	}
	fd, err := ignoringEINTR(func() (int, error) { return unix.Open(process+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var polled [8]byte // a struct pollfd: int fd, short events, short revents
	n, err := ignoringEINTR(func() (int, error) { return unix.Pread(fd, polled[:], int64(address)) })
	if err != nil || n < len(polled) || binary.NativeEndian.Uint16(polled[4:])&unix.POLLIN == 0 {
		return false
	}
	return isTerminal(process, uint64(binary.NativeEndian.Uint32(polled[:])), tty)
}

// isTerminal reports whether a descriptor of the process is the terminal.
func isTerminal(process string, fd uint64, tty int) bool {
	var st unix.Stat_t
	if tty <= 0 || unix.Stat(process+"/fd/"+strconv.FormatUint(fd, 10), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return false
	}
	ours := device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}
	return ours == terminal(tty) || ours == device{5, 0} // /dev/tty
}

// readsFrom returns the descriptor that call reads from, if it is a read. sendfile is one too: busybox's cat and others read so.
func readsFrom(call *proc.Call) (fd uint64, ok bool) {
	switch call.Number {
	case unix.SYS_READ:
		return call.Args[0], true
	case unix.SYS_SENDFILE:
		return call.Args[1], true
	}
	return 0, false
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

// Marked returns the processes that had word in their environment when they executed their program.
func Marked(word string) []int {
	if word == "" {
		return nil // every environment contains the empty word
	}
	r := newReader()
	var found []int
	for _, pid := range numbers("/proc") {
		if env, err := r.read("/proc/" + strconv.Itoa(pid) + "/environ"); err == nil && bytes.Contains(env, []byte(word)) {
			found = append(found, pid)
		}
	}
	return found
}

// Uptime asks the kernel's clock, from which start times come; lxcfs replaces /proc/uptime by the container's.
func Uptime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// Signal sends each process each signal, and returns how many were sent. The error says that there is no such signal; then none was sent.
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
		if pid <= 0 { // kill takes it for a process group, 0 for our own
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
