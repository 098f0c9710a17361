package procfs

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A fileKind says what makes a file ready.
type fileKind uint8

const (
	foreignFile  fileKind = iota // anything else, such as a file, a listening socket, inotify
	terminalFile                 // a person who types, or the process that has the master
	masterFile                   // a program on the terminal of which this is the master
	pipeFile                     // a process that has the other end of the pipe or FIFO
	socketFile                   // a process that has the other end
	signalFile                   // a signal or the end of a child: a signalfd, a pidfd
	ownFile                      // its own process: an eventfd, a timerfd that is not armed
)

// A file is a file that a thread waits for.
type file struct {
	requested
	kind     fileKind
	name     string // of a pipe or socket: what its link in /proc/PID/fd says
	terminal pts    // of a terminalFile
}

// fileOf looks at the file behind a descriptor of the thread with that directory.
func (v *view) fileOf(p *process, task string, q requested) file {
	f := file{requested: q}
	number := strconv.FormatUint(q.fd, 10)
	path := task + "/fd/" + number
	link, err := os.Readlink(path)
	if err != nil {
		return f
	}
	switch kind, what, _ := strings.Cut(link, ":"); {
	case strings.HasPrefix(link, "/"):
		v.inspectPath(p, path, link, &f)
	case kind == "pipe":
		f.kind, f.name = pipeFile, link
	case kind == "socket":
		f.kind, f.name = socketFile, link
	case kind != "anon_inode":
	case what == "[eventfd]":
		f.kind = ownFile
	case what == "[signalfd]", strings.Contains(what, "pidfd"):
		f.kind = signalFile
	case what == "[timerfd]" && !v.isArmed(task+"/fdinfo/"+number):
		f.kind = ownFile
	}
	return f
}

// inspectPath sets what f is, a file that has a path.
func (v *view) inspectPath(p *process, path, link string, f *file) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return
	}
	if st.Mode&unix.S_IFMT == unix.S_IFIFO {
		f.kind, f.name = pipeFile, link
		return
	}
	t, master := terminalOfFile(&st, func() pts { return p.tty })
	switch {
	case master:
		f.kind = masterFile
	case t.number != 0:
		f.kind, f.terminal = terminalFile, t
	}
}

// isArmed reports whether a timerfd is going to be ready before longLimit has passed. Its fdinfo
// has the line "it_value: (seconds, nanoseconds)", with the time that is left.
func (v *view) isArmed(info string) bool {
	left, ok := v.r.field(info, "it_value:")
	seconds, rest, _ := strings.Cut(strings.TrimPrefix(left, "("), ",")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if !ok || err != nil {
		return true
	}
	unarmed := n == 0 && strings.Trim(rest, " )") == "0"
	return !unarmed && n < int64(longLimit/time.Second)
}

// An end is a pipe or socket to look for in the descriptors of processes.
type end struct {
	name    string // what its link in /proc/PID/fd says
	writers bool   // the pipe's write end only
}

// maxHeld bounds the descriptors that one look looks at to find the holders of ends.
const maxHeld = 8192

// findHolders returns the processes that have each of the ends. ok is false if there are too many
// descriptors to look at.
func (v *view) findHolders(ps []*process, ends map[end]bool) (holders map[end][]int, ok bool) {
	holders = map[end][]int{}
	if len(ends) == 0 {
		return holders, true
	}
	left := maxHeld
	for _, p := range ps {
		v.asSeen(p, func() { v.addHeld(p, ends, holders, &left) })
		if left < 0 {
			return nil, false
		}
	}
	return holders, true
}

// addHeld adds those of the ends that the process has to holders.
func (v *view) addHeld(p *process, ends map[end]bool, holders map[end][]int, left *int) {
	dir, err := os.Open("/proc/" + strconv.Itoa(p.PID) + "/fd")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(*left + 1)
	*left -= len(names)
	for _, name := range names {
		path := dir.Name() + "/" + name
		link, err := os.Readlink(path)
		if err != nil {
			continue
		}
		any, writer := end{name: link}, end{name: link, writers: true}
		if ends[any] {
			holders[any] = appendOnce(holders[any], p.PID)
		}
		if ends[writer] && isWritable(path) {
			holders[writer] = appendOnce(holders[writer], p.PID)
		}
	}
}

// appendOnce appends pid, which can be the last element at most.
func appendOnce(pids []int, pid int) []int {
	if n := len(pids); n > 0 && pids[n-1] == pid {
		return pids
	}
	return append(pids, pid)
}

// isWritable reports whether the descriptor is open for writing. The mode of its link says that.
func isWritable(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IWUSR != 0
}
