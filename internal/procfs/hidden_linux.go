package procfs

import (
	"os"
	"slices"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// hidden reports whether a process of the view hides what it waits for, and the modes of its
// terminal. Of several it is the one that was found last: the farthest from the shell.
func (v *view) hidden() (found bool, m proc.Modes) {
	for _, p := range v.processes {
		if !p.hidden || v.hiddenRelay(p) {
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

// hiddenRelay reports whether the process, which hides what it waits for, is taken for a relay: its
// terminal is raw, and it has descendants on another one. sudo is such a one: it hides itself from
// root too, where root may not trace.
func (v *view) hiddenRelay(p *process) bool {
	return p.tty.number != 0 && v.modesOf(p.tty, p.PID).Raw && len(v.inner(p)) > 0
}

// hiddenRelays returns those on the terminal.
func (v *view) hiddenRelays(t pts) (found []*process) {
	for _, p := range v.processes {
		if p.hidden && p.tty == t && v.hiddenRelay(p) {
			found = append(found, p)
		}
	}
	return found
}

// inferShell finds out what the view's process, a shell, waits for where the kernel has no file
// that tells it (gVisor). One that sleeps and has no child reads its standard input, which is the
// terminal while it executes a command, and else the pipe of its commands. What else it may wait
// for then, as for somebody who opens a FIFO, is rare: so the wait is not said to be for the
// terminal alone.
func (v *view) inferShell(p *process, task string) {
	if p.threadCount != 1 || len(v.r.children(nil, task)) > 0 {
		return
	}
	q := request{input: []uint64{0}}
	w := q.resolve(task, func() pts { return v.tty })
	switch {
	case slices.Contains(w.inputs, v.tty):
		w.tid, w.alone, w.reading = p.PID, false, true
		p.waits = append(p.waits, w)
	case len(w.inputs) == 0:
		p.reads, _ = os.Readlink(task + "/fd/0")
	default:
		return
	}
	p.hidden = false
}
