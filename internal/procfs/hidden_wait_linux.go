package procfs

import (
	"os"
	"slices"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// hiddenWaiter reports whether the kernel hides what a process of the view waits for, and returns
// the modes of that process's terminal. If there are several such processes, the modes are those of
// the one that was found last, which is the farthest from the shell.
func (v *view) hiddenWaiter() (found bool, m proc.Modes) {
	for _, p := range v.processes {
		if !p.hidden || v.isHiddenRelay(p) {
			continue
		}
		t, pid := p.tty, p.PID
		if t.number == 0 {
			t, pid = v.tty, v.pid
		}
		found, m = true, v.modesOf(t, pid).Modes
	}
	return found, m
}

// isHiddenRelay reports whether p, a process with a hidden wait, is taken for a relay: its terminal
// is in raw mode, and it has descendants on another terminal. sudo is an example. The kernel hides
// it even from root, if root may not trace.
func (v *view) isHiddenRelay(p *process) bool {
	return p.tty.number != 0 && v.modesOf(p.tty, p.PID).Raw && len(v.descendantTerminals(p)) > 0
}

// hiddenRelaysOn returns the hidden relays whose controlling terminal is t.
func (v *view) hiddenRelaysOn(t pts) (found []*process) {
	for _, p := range v.processes {
		if p.hidden && p.tty == t && v.isHiddenRelay(p) {
			found = append(found, p)
		}
	}
	return found
}

// inferShell infers what the view's process, a shell, waits for, on a kernel without the file
// /proc/PID/syscall (gVisor). A shell that sleeps and has no child reads its standard input. That
// is the terminal while the shell executes a command, and otherwise the pipe of its commands. In
// rare cases the shell waits for something else, such as another process that opens a FIFO. So the
// wait is marked as guessed.
func (v *view) inferShell(p *process, task string) {
	if p.threadCount != 1 || len(v.r.threadChildren(nil, task)) > 0 {
		return
	}
	q := request{files: []requested{{fd: 0, in: true}}}
	w := q.resolve(task, func() pts { return v.tty })
	switch {
	case slices.Contains(w.inputs, v.tty):
		w.tid, w.guessed, w.reading = p.PID, true, true
		p.waits = append(p.waits, w)
	case len(w.inputs) == 0:
		p.reads, _ = os.Readlink(task + "/fd/0")
	default:
		return
	}
	p.hidden = false
}
