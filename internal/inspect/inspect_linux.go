package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func tree(pids []int) (string, error) {
	r := newReader()
	var parents map[int][]int
	self := strconv.Itoa(os.Getpid())
	if unix.Access("/proc/self/task/"+self+"/children", unix.F_OK) != nil { // a kernel without CONFIG_PROC_CHILDREN
		parents = r.parents()
	}
	return r.tree(pids, parents), nil
}

// parents returns all processes by their parents.
func (r *reader) parents() map[int][]int {
	parents := map[int][]int{}
	for _, pid := range numbers("/proc") {
		if s, ok := r.stat(pid); ok {
			ppid, _ := strconv.Atoi(s.ppid)
			parents[ppid] = append(parents[ppid], pid)
		}
	}
	return parents
}

// tree goes through the processes breadth first. If parents is not nil, it says who descends from whom, else the kernel does.
func (r *reader) tree(pids []int, parents map[int][]int) string {
	var out []byte
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
			out = s.line(out, pid, s.code, s.comm)
			foreground := s.pgrp == s.tpgid
			next = append(next, parents[pid]...)
			if parents != nil && !foreground {
				continue
			}
			dir := "/proc/" + strconv.Itoa(pid)
			threads := []int{pid}
			if s.threads != "1" {
				threads = numbers(dir + "/task")
				slices.Sort(threads)
			}
			for _, tid := range threads {
				if parents == nil {
					next = r.children(next, dir+"/task/"+strconv.Itoa(tid))
				}
				if foreground {
					out = r.thread(out, dir, tid, s.tty)
				}
			}
		}
		pids = next
	}
	return string(out)
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

// thread appends the T line of the thread tid of the process with that directory, unless it has just ended.
func (r *reader) thread(out []byte, process string, tid int, tty string) []byte {
	dir := process + "/task/" + strconv.Itoa(tid)
	wchan := r.word(dir+"/wchan", 0)
	line, err := r.read(dir + "/syscall")
	call := strings.TrimSpace(string(line))
	reads := "-"
	switch {
	case errors.Is(err, unix.ESRCH), err != nil && unix.Access(dir, unix.F_OK) != nil:
		return out
	case call == "":
		reads = "?"
	case readsTerminal(process, call, tty), pollsTerminal(process, call, tty):
		reads = "tty"
	}
	turns := r.word(dir+"/schedstat", 2)
	return fmt.Appendf(out, "T %d %s %s %s %s\n", tid, turns, reads, wchan, call)
}

// word returns the file's word of that index, "-" if there is none.
func (r *reader) word(path string, i int) string {
	b, _ := r.read(path)
	if words := bytes.Fields(b); i < len(words) {
		return string(words[i])
	}
	return "-"
}

// readsTerminal reports whether the system call, as /proc/PID/syscall has it, is a read of the terminal.
func readsTerminal(process, call, tty string) bool {
	fd, ok := readsFrom(call)
	return ok && isTerminal(process, fd, tty)
}

// pollsTerminal reports whether the system call waits, without end, for the terminal alone: so busybox ash waits in its builtin read, in a script too.
// Which descriptor it is, only the memory of the process tells.
func pollsTerminal(process, call, tty string) bool {
	words := strings.Fields(call)
	if len(words) < 4 || words[2] != "0x1" {
		return false
	}
	switch number, timeout := words[0], words[3]; {
	case number == strconv.Itoa(unix.SYS_PPOLL) && timeout == "0x0":
	case runtime.GOARCH == "amd64" && number == "7" && timeout == "0xffffffff": // poll, which newer architectures have not
	default:
		return false
	}
	address, err := strconv.ParseUint(words[1], 0, 64)
	if err != nil || address > 1<<63-1 {
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
func isTerminal(process string, fd uint64, tty string) bool {
	var st unix.Stat_t
	if unix.Stat(process+"/fd/"+strconv.FormatUint(fd, 10), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return false
	}
	number, err := strconv.ParseUint(tty, 10, 32)
	if err != nil || number == 0 {
		return false
	}
	ours := device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}
	return ours == terminal(number) || ours == device{5, 0} // /dev/tty
}

// readsFrom returns the descriptor that is read from if call is a read: or the sendfile with which busybox's cat, and others, read.
func readsFrom(call string) (fd uint64, ok bool) {
	words := strings.Fields(call)
	if len(words) < 3 {
		return 0, false
	}
	arg := words[1]
	switch words[0] {
	case strconv.Itoa(unix.SYS_READ):
	case strconv.Itoa(unix.SYS_SENDFILE):
		arg = words[2]
	default:
		return 0, false
	}
	fd, err := strconv.ParseUint(arg, 0, 64)
	return fd, err == nil
}

func alive(pids []int) (string, error) {
	r := newReader()
	_, procErr := r.read("/proc/self/stat")
	var out []byte
	for _, pid := range pids {
		if procErr != nil {
			if unix.Kill(pid, 0) == nil {
				out = fmt.Appendf(out, "P %d S 0 0 0 0 0 0 - -\n", pid)
			}
		} else if s, ok := r.stat(pid); ok {
			out = s.line(out, pid, "-", "-")
		}
	}
	return string(out), nil
}

func marked(word string) (string, error) {
	r := newReader()
	var found []string
	for _, pid := range numbers("/proc") {
		id := strconv.Itoa(pid)
		if env, err := r.read("/proc/" + id + "/environ"); err == nil && bytes.Contains(env, []byte(word)) {
			found = append(found, id)
		}
	}
	return strings.Join(found, " ") + "\n", nil
}

// uptime asks the clock that start times are taken from; /proc/uptime may be another's (lxcfs).
func uptime() (string, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return "", nil
	}
	return fmt.Sprintf("%d.%02d\n", t.Sec, t.Nsec/1e7), nil
}

func send(names []string, pids []int) (string, error) {
	signals := make([]unix.Signal, len(names))
	for i, name := range names {
		if n, err := strconv.ParseUint(name, 10, 8); err == nil {
			signals[i] = unix.Signal(n)
		} else if signals[i] = unix.SignalNum("SIG" + name); signals[i] == 0 {
			return "", fmt.Errorf("no signal: %q", name)
		}
	}
	var out strings.Builder
	for _, pid := range pids {
		for _, sig := range signals {
			if unix.Kill(pid, sig) == nil {
				out.WriteString("sent\n")
			}
		}
	}
	return out.String(), nil
}
