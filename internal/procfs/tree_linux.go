package procfs

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// Tree returns the processes and all their descendants, each once, and each after its parent.
func Tree(pids ...int) []proc.Process {
	r := newReader()
	return r.walk(pids, r.childrenByParent())
}

// childrenByParent returns the children of all processes, by parent. It returns nil if the kernel
// lists the children of a thread itself, which takes CONFIG_PROC_CHILDREN.
func (r *reader) childrenByParent() map[int][]int {
	self := strconv.Itoa(os.Getpid())
	if unix.Access("/proc/self/task/"+self+"/children", unix.F_OK) == nil {
		return nil
	}
	return r.scanChildren()
}

// scanChildren looks at all processes, and returns the children of each.
func (r *reader) scanChildren() map[int][]int {
	children := map[int][]int{}
	for _, pid := range numericNames("/proc") {
		if s, ok := r.stat(pid); ok {
			children[s.Parent] = append(children[s.Parent], pid)
		}
	}
	return children
}

// childrenOf appends the children of the process to pids. byParent is a result of childrenByParent.
func (r *reader) childrenOf(pids []int, s *stat, byParent map[int][]int) []int {
	if byParent != nil {
		return append(pids, byParent[s.PID]...)
	}
	dir := "/proc/" + strconv.Itoa(s.PID)
	for _, tid := range s.threadIDs(dir) {
		pids = r.threadChildren(pids, dir+"/task/"+strconv.Itoa(tid))
	}
	return pids
}

// walk returns the processes and their descendants, breadth first. byParent is a result of
// childrenByParent.
func (r *reader) walk(pids []int, byParent map[int][]int) []proc.Process {
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
			next = r.childrenOf(next, &s, byParent)
		}
		pids = next
	}
	return ps
}

// threadChildren appends to pids the processes that the thread with that directory has started.
func (r *reader) threadChildren(pids []int, dir string) []int {
	list, _ := r.read(dir + "/children")
	for word := range bytes.FieldsSeq(list) {
		if pid, err := strconv.Atoi(string(word)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Alive returns those of the processes that exist, zombies included. Without /proc, it sets only
// PID and State, and State is "S".
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
