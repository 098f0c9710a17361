package procfs

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// maxTerminals is how many terminals a look searches at most, which are those of nested relays.
const maxTerminals = 256

// A reading is a wait for input from a terminal that findWaits has found.
type reading struct {
	proc.Wait
	process  *process
	terminal pts
	unsure   bool // it is guessed, or a relay on the way hides what it waits for
}

// findWaits returns the threads that wait for the terminal's input. A relay reads one terminal and
// passes the input on to another. Instead of the relay, findWaits returns the threads that wait for
// the other terminal. turns is the sum of the turns of the relays on the way to this terminal. No
// terminal is searched twice, because a program may hold the master of its own terminal. A process
// that reads a terminal that is not searched counts as one that can go on.
func (v *view) findWaits(t pts, turns int64) []reading {
	if v.searched[t] || len(v.searched) == maxTerminals {
		return nil
	}
	v.searched[t] = true
	ps := v.waitersOn(t)
	hidden := v.hiddenRelaysOn(t)
	if len(ps) == 0 && len(hidden) == 0 {
		ps = allProcesses.waitingStrangers(v, t)
	}
	var found []reading
	for _, p := range ps {
		m := v.modesOf(t, p.PID)
		for _, w := range p.waits {
			if !slices.Contains(w.inputs, t) {
				continue
			}
			if inner := v.relayTargets(p, w, t, m); len(inner) > 0 {
				v.relays[p.PID] = p
				for _, t := range inner {
					found = append(found, v.findWaits(t, turns+w.turns)...)
				}
				continue
			}
			found = append(found, reading{proc.Wait{
				PID: p.PID, TID: w.tid, Name: p.Name, Modes: m.Modes, Turns: turns + w.turns,
			}, p, t, w.guessed})
		}
	}
	for _, p := range hidden {
		v.relays[p.PID] = p
		for _, t := range v.descendantTerminals(p) {
			for _, w := range v.findWaits(t, turns+p.turns) {
				w.unsure = true // the relay may wait for something else too
				found = append(found, w)
			}
		}
	}
	return found
}

// waitersOn returns the processes of the view that wait for the terminal.
func (v *view) waitersOn(t pts) []*process {
	var found []*process
	for _, p := range v.processes {
		if p.waitsFor(t) {
			found = append(found, p)
		}
	}
	return found
}

// waitsFor reports whether the process waits for the terminal. A process in the background of the
// terminal does not, because it would not get the input.
func (p *process) waitsFor(t pts) bool {
	if p.tty == t && p.background() {
		return false
	}
	return slices.ContainsFunc(p.waits, func(w wait) bool { return slices.Contains(w.inputs, t) })
}

// relayTargets returns the terminals to which p, a process that waits for t, may pass on the input:
// those whose masters p holds, and those of p's descendants. p can be a relay only if t is in raw
// mode (script, sudo), or if the call that waits for t also waits for a master (socat). Otherwise
// the result is empty.
func (v *view) relayTargets(p *process, w wait, t pts, m modes) []pts {
	if !m.Raw && !w.masters {
		return nil
	}
	inner := v.mastersOf(p)
	if p.stranger { // a tmux server
		v.addTree(p.PID, nil)
	}
	inner = append(inner, v.descendantTerminals(p)...)
	return slices.DeleteFunc(inner, func(i pts) bool { return i == t })
}

// descendantTerminals returns the controlling terminals of p's descendants, without p's own.
func (v *view) descendantTerminals(p *process) (found []pts) {
	if p.PID == v.pid { // the shell is no relay, although its jobs may have other terminals
		return nil
	}
	seen := map[int]bool{p.PID: true} // parents read at different moments may form a circle
	known := map[pts]bool{p.tty: true}
	next := slices.Clone(v.childrenOf(p.PID))
	for ; len(next) > 0 && len(found) < maxTerminals; next = next[1:] {
		q := next[0]
		if seen[q.PID] {
			continue
		}
		seen[q.PID] = true
		if q.tty.number != 0 && !known[q.tty] {
			known[q.tty] = true
			found = append(found, q.tty)
		}
		next = append(next, v.childrenOf(q.PID)...)
	}
	return found
}

// childrenOf returns the processes of the view whose parent is that process.
func (v *view) childrenOf(pid int) []*process {
	for _, p := range v.processes[v.placed:] {
		v.children[p.Parent] = append(v.children[p.Parent], p)
	}
	v.placed = len(v.processes)
	return v.children[pid]
}

// mastersOf returns the terminals whose masters the process has open.
func (v *view) mastersOf(p *process) (found []pts) {
	dir := "/proc/" + strconv.Itoa(p.PID)
	left := maxHeld
	look := func() {
		for _, tid := range p.stat.threadIDs(dir) {
			task := dir + "/task/" + strconv.Itoa(tid)
			for _, fd := range numericNames(task + "/fd") {
				if left--; left < 0 {
					return
				}
				if t, ok := v.masterTerminal(dir, task, strconv.Itoa(fd)); ok &&
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
		asOwnerOf(dir, look)
	}
	return found
}

// masterTerminal returns the terminal of a descriptor that is a master. Since Linux 4.14, the
// descriptor's fdinfo has the terminal's number ("tty-index:").
func (v *view) masterTerminal(dir, task, fd string) (t pts, ok bool) {
	var st unix.Stat_t
	if unix.Stat(task+"/fd/"+fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR ||
		(device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}) != devPtmx {
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
	// /dev/ptmx is a file in /dev, or a link to pts/ptmx. In both cases the terminal is in
	// /dev/pts, as the process sees it.
	if t.dev = deviceOf(dir + "/root/dev/pts"); t.dev == 0 {
		t.dev = v.devpts
	}
	t.number = device{136, uint32(minor)}.ttyNumber()
	return t, true
}

// modes are the modes of a terminal.
type modes struct {
	proc.Modes
	timed bool // a read ends without input after some time (VMIN 0, VTIME above 0)
}

// modesOf returns the modes of a terminal that is in the devpts of the process. To read them, it
// opens and closes the terminal. So the process must have the terminal open: closing the last
// descriptor of a terminal hangs up its master.
func (v *view) modesOf(t pts, pid int) modes {
	if m, ok := v.modes[t]; ok {
		return m
	}
	dir := "/dev/pts"
	if t.dev != v.devpts {
		dir = "/proc/" + strconv.Itoa(pid) + "/root/dev/pts"
	}
	var m modes
	withTerminalIn(dir, t.number, func(fd int) { m = readModes(fd) })
	v.modes[t] = m
	return m
}
