package procfs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs/sockdiag"
)

// This file decides whether anything of a command can go on without input from its terminal. That
// depends on the whole command, and not only on the thread that reads.

// A command is the processes that a session's shell waits for, as far as /proc shows that: the
// foreground process group of the terminal that is read, the processes that read it, and all their
// descendants. The shell itself belongs to the command only if it reads.
type command struct {
	view     *view
	members  []*process
	byID     map[int]*process
	children map[int][]int // of members
	relays   map[int]bool  // members, and others, that only bring the readers their input

	live  map[int]bool         // can go on by itself
	edges map[int]map[int]bool // by a process, those that may go on if it does
	count int                  // of edges
	lines map[int]int          // by a process: see liveInLine
}

// judge returns the waits with Alone and OthersRun set.
func (v *view) judge(found []reading, foreground int) (waits []proc.Wait) {
	if len(found) == 0 {
		return nil
	}
	c := v.commandOf(found, foreground)
	c.findLive()
	for i := range found {
		w := &found[i]
		w.Alone, w.OthersRun = c.judge(w)
		waits = append(waits, w.Wait)
	}
	return waits
}

// commandOf returns the command of the readers. It replaces the processes of readers that are
// strangers by what it sees of these processes.
func (v *view) commandOf(found []reading, foreground int) *command {
	c := &command{view: v, byID: map[int]*process{}, children: map[int][]int{},
		relays: map[int]bool{}, live: map[int]bool{}, edges: map[int]map[int]bool{},
		lines: map[int]int{}}
	var next []*process
	for i := range found {
		w := &found[i]
		if w.process.stranger {
			v.addTree(w.PID, nil)
		}
		if p := v.byID[w.PID]; p != nil {
			w.process = p
			next = append(next, p)
		}
	}
	below := map[int][]*process{}
	for _, p := range v.processes {
		below[p.Parent] = append(below[p.Parent], p)
		if p.PID != v.pid && (foreground != 0 && p.Group == foreground ||
			p.tty != v.tty && p.tty.number != 0 && v.searched[p.tty] && p.Group == p.Foreground) {
			next = append(next, p)
		}
	}
	for len(next) > 0 {
		p := next[0]
		if next = next[1:]; c.byID[p.PID] != nil {
			continue
		}
		c.byID[p.PID] = p
		c.members = append(c.members, p)
		if p.PID != v.pid {
			next = append(next, below[p.PID]...)
		}
	}
	for _, p := range c.members {
		c.children[p.Parent] = append(c.children[p.Parent], p.PID)
	}
	for pid := range v.relays {
		c.relays[pid] = true
	}
	c.addRelays(found)
	return c
}

// addRelays adds the readers' ancestors on another terminal than the one that is read, or on none.
func (c *command) addRelays(found []reading) {
	type step struct {
		pid      int
		terminal pts
	}
	passed := map[step]bool{}
	for i := range found {
		w := &found[i]
		if w.terminal == c.view.tty {
			continue
		}
		for p := c.byID[w.PID]; p != nil; p = c.byID[p.Parent] {
			if p.PID != w.PID && p.tty != w.terminal {
				c.relays[p.PID] = true
			}
			if passed[step{p.PID, w.terminal}] {
				break
			}
			passed[step{p.PID, w.terminal}] = true
		}
	}
}

// liveInLine returns how many of the process and its ancestors can go on by themselves, as far as
// they belong to the command.
func (c *command) liveInLine(pid int) int {
	var line []int
	for p := c.byID[pid]; p != nil; p = c.byID[p.Parent] {
		if _, ok := c.lines[p.PID]; ok {
			break
		}
		// Parents that are read at different moments may form a circle.
		c.lines[p.PID] = 0
		line = append(line, p.PID)
	}
	for _, pid := range slices.Backward(line) {
		p := c.byID[pid]
		c.lines[pid] = c.lines[p.Parent]
		if c.live[pid] {
			c.lines[pid]++
		}
	}
	return c.lines[pid]
}

// judge returns Alone and OthersRun of a wait.
func (c *command) judge(w *reading) (alone, othersRun bool) {
	live := c.liveInLine(w.PID)
	return !w.unsure && c.byID[w.PID] != nil && live == 0, len(c.live) > live
}

// findLive finds out which processes can go on by themselves, and which can if these do.
func (c *command) findLive() {
	budget := maxFiles
	for _, p := range c.members {
		if !c.relays[p.PID] {
			c.view.inspectThreads(p, &budget)
		}
	}
	ends := c.findEnds()
	var next []int
	for _, p := range c.members {
		if !c.relays[p.PID] && c.isLive(p, ends) {
			next = append(next, p.PID)
		}
	}
	for len(next) > 0 {
		pid := next[0]
		if next = next[1:]; c.live[pid] {
			continue
		}
		c.live[pid] = true
		for waiting := range c.edges[pid] {
			next = append(next, waiting)
		}
	}
}

// addEdge adds that waiting may go on if the other process does. It reports false if there are too
// many edges.
func (c *command) addEdge(waiting, other int) bool {
	if waiting == other || c.edges[other][waiting] {
		return true
	}
	if c.edges[other] == nil {
		c.edges[other] = map[int]bool{}
	}
	c.edges[other][waiting] = true
	c.count++
	return c.count <= maxEdges
}

// ends says which processes have the other ends of the pipes and sockets that the command waits
// for.
type ends struct {
	peers   map[string]string // by the name of a socket, that of the other end
	holders map[end][]int
	outside map[int]bool // processes that do not belong to the command
	ok      bool
}

// findEnds looks for the processes that have the other ends of what the command's threads wait for.
func (c *command) findEnds() *ends {
	e := &ends{peers: map[string]string{}, outside: map[int]bool{}, ok: true}
	wanted := map[end]bool{}
	var sockets []string
	for _, p := range c.members {
		for _, t := range p.threads {
			for _, f := range t.files {
				switch f.kind {
				case pipeFile:
					wanted[f.otherEnd()] = true
				case socketFile:
					sockets = append(sockets, f.name)
				}
			}
		}
	}
	slices.Sort(sockets)
	e.findPeers(slices.Compact(sockets), c.members)
	for _, peer := range e.peers {
		wanted[end{name: peer}] = true
	}
	ps := slices.Clone(c.members)
	for _, p := range c.view.relays {
		if c.byID[p.PID] == nil {
			ps = append(ps, p)
		}
	}
	// A process that the command has left behind, or a job in the background, may have inherited an
	// end. The shell has ends too, but it waits for the command.
	for _, p := range c.view.processes {
		if c.byID[p.PID] == nil && c.view.relays[p.PID] == nil && p.PID != c.view.pid {
			e.outside[p.PID] = true
			ps = append(ps, p)
		}
	}
	e.holders, e.ok = c.view.findHolders(ps, wanted)
	return e
}

// otherEnd returns the end of a pipe that makes f ready.
func (f *file) otherEnd() end { return end{name: f.name, writers: f.in} }

// findPeers sets the other ends of the sockets. It takes long to find those of TCP connections, so
// findPeers does that only if the command has several processes: few processes have a connection to
// themselves.
func (e *ends) findPeers(sockets []string, members []*process) {
	const maxSockets = 256
	if len(sockets) == 0 || len(sockets) > maxSockets {
		return
	}
	name := func(inode uint64) string { return "socket:[" + strconv.FormatUint(inode, 10) + "]" }
	var diag sockdiag.Conn
	defer diag.Close()
	var tcp map[uint64]uint64
	for _, s := range sockets {
		digits := strings.TrimSuffix(strings.TrimPrefix(s, "socket:["), "]")
		inode, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			continue
		}
		peer, ok := diag.UnixPeer(inode)
		if !ok && len(members) > 1 {
			if tcp == nil {
				tcp = sockdiag.TCPPeers("/proc/" + strconv.Itoa(members[0].PID))
			}
			peer, ok = tcp[inode]
		}
		if ok {
			e.peers[s] = name(peer)
		}
	}
}

// of returns the processes that have the other end of a pipe or socket. ok is false if no process
// of the command has it, or if a process outside the command has it too.
func (e *ends) of(f *file) (pids []int, ok bool) {
	if !e.ok {
		return nil, false
	}
	if f.kind == socketFile {
		peer, ok := e.peers[f.name]
		if !ok {
			return nil, false
		}
		pids = e.holders[end{name: peer}]
	} else {
		pids = e.holders[f.otherEnd()]
	}
	return pids, len(pids) > 0 && !slices.ContainsFunc(pids, func(p int) bool {
		return e.outside[p]
	})
}
