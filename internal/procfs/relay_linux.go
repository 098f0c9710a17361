package procfs

import (
	"slices"
	"strconv"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"golang.org/x/sys/unix"
)

// waits returns who waits for the terminal. A relay does not wait itself: it brings its input to
// another terminal, and whoever waits for that one waits. turns are those of the relays that led
// here; no terminal is visited twice, for a program may hold its own terminal's master.
func (v *view) waits(t pts, turns int64, visited map[pts]bool) []proc.Wait {
	if visited[t] {
		return nil
	}
	visited[t] = true
	ps := v.waiting(t)
	hidden := v.hiddenRelays(t)
	if len(ps) == 0 && len(hidden) == 0 {
		ps = everyone.strangers(v, t)
	}
	var found []proc.Wait
	for _, p := range ps {
		m := v.modesOf(t, p.PID)
		for _, w := range p.waits {
			if !slices.Contains(w.inputs, t) {
				continue
			}
			if inner := v.behind(p, w, t, m); len(inner) > 0 {
				for _, t := range inner {
					found = append(found, v.waits(t, turns+w.turns, visited)...)
				}
				continue
			}
			found = append(found, proc.Wait{
				PID: p.PID, TID: w.tid, Name: p.Name, Modes: m.Modes, Turns: turns + w.turns,
				Alone: w.alone && p.active == 0 && !(w.reading && m.timed),
			})
		}
	}
	for _, p := range hidden {
		for _, t := range v.inner(p) {
			for _, w := range v.waits(t, turns+p.turns, visited) {
				w.Alone = false // who knows what else the relay has to bring
				found = append(found, w)
			}
		}
	}
	return found
}

// waiting returns those of the view's processes that wait for the terminal.
func (v *view) waiting(t pts) []*process {
	var found []*process
	for _, p := range v.processes {
		if p.waitsFor(t) {
			found = append(found, p)
		}
	}
	return found
}

// waitsFor reports whether the process waits for the terminal. One that is in the background of
// that terminal does not: it would not be given the input.
func (p *process) waitsFor(t pts) bool {
	if p.tty == t && p.background() {
		return false
	}
	return slices.ContainsFunc(p.waits, func(w wait) bool { return slices.Contains(w.inputs, t) })
}

// behind returns the terminals to which a process that waits for t may bring its input: those that
// it holds the masters of, and those of its descendants. It is a relay if t is in raw mode (script,
// sudo), or if it asks for such a master in the same call (socat).
func (v *view) behind(p *process, w wait, t pts, m modes) []pts {
	if !m.Raw && !w.masters {
		return nil
	}
	inner := v.masters(p)
	if p.stranger { // a tmux server
		v.family(p.PID, nil)
	}
	inner = append(inner, v.inner(p)...)
	return slices.DeleteFunc(inner, func(i pts) bool { return i == t })
}

// inner returns the terminals of the process's descendants that are not its own.
func (v *view) inner(p *process) (found []pts) {
	if p.PID == v.pid { // a shell that reads keys has jobs, and jobs have terminals
		return nil
	}
	for _, q := range v.processes {
		if q.tty.number != 0 && q.tty != p.tty && v.descends(q, p) &&
			!slices.Contains(found, q.tty) {
			found = append(found, q.tty)
		}
	}
	return found
}

// descends reports whether q descends from p.
func (v *view) descends(q, p *process) bool {
	for range v.processes { // parents found at different moments might go in a circle
		switch q = v.byID[q.Parent]; {
		case q == nil:
			return false
		case q.PID == p.PID:
			return true
		}
	}
	return false
}

// masters returns the terminals that the process holds the masters of.
func (v *view) masters(p *process) (found []pts) {
	dir := "/proc/" + strconv.Itoa(p.PID)
	look := func() {
		for _, tid := range p.stat.threads(dir) {
			task := dir + "/task/" + strconv.Itoa(tid)
			for _, fd := range numbers(task + "/fd") {
				if t, ok := v.master(dir, task, strconv.Itoa(fd)); ok &&
					!slices.Contains(found, t) {
					found = append(found, t)
				}
			}
			if len(found) > 0 { // threads share their descriptors
				return
			}
		}
	}
	if look(); len(found) == 0 {
		as(dir, look)
	}
	return found
}

// master returns the terminal of a descriptor that is a master. Its fdinfo tells the terminal since
// Linux 4.14 ("tty-index:").
func (v *view) master(dir, task, fd string) (t pts, ok bool) {
	var st unix.Stat_t
	if unix.Stat(task+"/fd/"+fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR ||
		(device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}) != multiplexer {
		return t, false
	}
	index, ok := v.r.field(task+"/fdinfo/"+fd, "tty-index:")
	if !ok {
		return t, false
	}
	minor, err := strconv.ParseUint(index, 10, 20)
	if err != nil {
		return t, false
	}
	// /dev/ptmx is a file of its own, or a link to pts/ptmx: the terminal is in the devpts beside
	// it.
	if t.dev = deviceOf(dir + "/root/dev/pts"); t.dev == 0 {
		t.dev = v.devpts
	}
	t.number = device{136, uint32(minor)}.number()
	return t, true
}

// modes are a terminal's, and whether a read of it ends after some time without input (VMIN 0,
// VTIME).
type modes struct {
	proc.Modes
	timed bool
}

// modesOf returns the modes of a terminal that is in the devpts of the process. The process must
// have it open: closing the last descriptor of a terminal hangs up its master.
func (v *view) modesOf(t pts, pid int) modes {
	if m, ok := v.modes[t]; ok {
		return m
	}
	dir := "/dev/pts"
	if t.dev != v.devpts {
		dir = "/proc/" + strconv.Itoa(pid) + "/root/dev/pts"
	}
	var m modes
	withTerminalIn(dir, t.number, func(fd int) { m = modesNow(fd) })
	v.modes[t] = m
	return m
}
