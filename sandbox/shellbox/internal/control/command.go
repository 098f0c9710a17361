package control

import (
	"slices"
	"strings"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// This file decides whether anything of a command can go on without input from its terminal, as
// package procfs does. But the script does not see which process has the other end of a pipe, nor
// most of what a thread polls. If it cannot tell, the process counts as one that can go on.

// A reading is a wait for input from a terminal that findWaits has found.
type reading struct {
	proc.Wait
	index    int // of the process
	terminal int
}

// A command is the processes that the shell waits for. All ids are indexes in snapshot.processes.
type command struct {
	*snapshot
	member  []bool
	readers map[int]bool // the threads that read, by their ids
	live    map[int]bool
}

// judge returns the waits that have been found, with Alone and OthersRun set.
func (v *snapshot) judge() (waits []proc.Wait) {
	if len(v.found) == 0 {
		return nil
	}
	c := v.command()
	c.findLive()
	// liveInLine is, for each process, how many of it and its ancestors are live, as far as they
	// belong to the command.
	liveInLine := make([]int, len(v.processes))
	for i := range v.processes {
		if !c.member[i] {
			continue
		}
		if parent := v.parents[i]; parent >= 0 {
			liveInLine[i] = liveInLine[parent]
		}
		if c.live[i] {
			liveInLine[i]++
		}
	}
	for _, w := range v.found {
		w.Alone, w.OthersRun = liveInLine[w.index] == 0, len(c.live) > liveInLine[w.index]
		waits = append(waits, w.Wait)
	}
	return waits
}

// command returns the command of the readers: the processes that read, the foreground process
// groups of the terminals, and all their descendants. The shell belongs to the command if it reads.
// If a process reads another terminal than that of its ancestor, the ancestor is a relay, unless
// the terminal is the shell's.
func (v *snapshot) command() *command {
	n := len(v.processes)
	c := &command{snapshot: v, member: make([]bool, n), readers: map[int]bool{},
		live: map[int]bool{}}
	read := make([]terminals, n) // the terminals that a process and its descendants read
	for _, w := range v.found {
		c.member[w.index], c.readers[w.TID] = true, true
		if w.terminal != v.processes[0].TTY {
			read[w.index].add(w.terminal)
		}
	}
	shell := &v.processes[0]
	for i := range v.processes { // each after its parent
		p, parent := &v.processes[i], v.parents[i]
		c.member[i] = c.member[i] || i > 0 && (p.Group == shell.Foreground ||
			p.TTY != 0 && p.TTY != shell.TTY && v.visited[p.TTY] && p.Group == p.Foreground ||
			parent > 0 && c.member[parent])
	}
	for i := n - 1; i > 0; i-- {
		parent := v.parents[i]
		if parent < 0 || !c.member[i] || !c.member[parent] {
			continue
		}
		read[parent].add(read[i]...)
		if read[i].hasOther(v.processes[parent].TTY) {
			v.relays[parent] = true
		}
	}
	return c
}

// findLive finds out which processes can go on by themselves, and which can if these do.
func (c *command) findLive() {
	var onChildren, onPipes, next []int
	for i := range c.processes {
		if !c.member[i] || c.relays[i] {
			continue
		}
		live, child, pipe := c.isLive(i)
		if live {
			next = append(next, i)
		}
		if child {
			onChildren = append(onChildren, i)
		}
		if pipe {
			onPipes = append(onPipes, i)
		}
	}
	if len(next) > 0 { // any of them may have the other end of the pipe
		next = append(next, onPipes...)
	}
	for _, i := range next {
		c.live[i] = true
	}
	for _, i := range slices.Backward(onChildren) { // children come after their parents
		if slices.ContainsFunc(c.children[i], func(child int) bool { return c.live[child] }) {
			c.live[i] = true
		}
	}
}

// isLive reports whether the process can go on by itself. child and pipe report whether it can go
// on if a child does, or if another process does that has the other end of a pipe.
func (c *command) isLive(index int) (live, child, pipe bool) {
	p := &c.processes[index]
	if strings.ContainsAny(p.State, "TtZX") {
		return false, false, false
	}
	if p.runs() || len(p.threads) == 0 { // nothing is known of a background process
		return true, false, false
	}
	m := c.modes[c.terminalOf(p)]
	leader, clocks, ticks, leaderReads, reads := p.leader(), 0, false, false, false
	for _, t := range p.threads {
		reads = reads || c.readers[t.id]
		leaderReads = leaderReads || c.readers[t.id] && t.id == leader
		switch t.what {
		case "-":
		case "tty", "woken":
			live = live || m.timed
		case "one":
			live = live || !c.readers[t.id]
		case "clock", "tick", "futex":
			switch {
			case t.id == p.PID:
				return true, false, false
			case t.what == "clock" && clocks == 0:
				clocks++
			case t.id == leader:
				return true, false, false
			default:
				ticks = true
			}
		case "child":
			child = true
		case "signal":
			child = true
			live = live || t.id == p.PID && len(c.children[index]) == 0
		case "pipe":
			pipe = true
		default:
			return true, false, false
		}
	}
	return live || ticks && reads && !leaderReads, child, pipe
}

func (c *command) terminalOf(p *process) int {
	if p.TTY == 0 {
		return c.processes[0].TTY
	}
	return p.TTY
}

// leader returns the thread that the process's main line is in: the main thread. If the main thread
// waits for other threads without a limit, and two or more of these tick, the oldest other thread
// has taken its place, as in a JVM.
func (p *process) leader() int {
	ticks, oldest, mainBlocked := 0, 0, false
	for _, t := range p.threads {
		switch {
		case t.id == p.PID:
			mainBlocked = t.what == "-"
			continue
		case t.what == "tick" || t.what == "clock":
			ticks++
		}
		if oldest == 0 || t.id < oldest {
			oldest = t.id
		}
	}
	if mainBlocked && ticks > 1 {
		return oldest
	}
	return p.PID
}
