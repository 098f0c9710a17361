package procfs

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A census is a list of the machine's processes that all looks share, because it takes too long to
// list the processes and to look at each of them for every look. On a busy machine that may take
// seconds, so no look waits for another.
type census struct {
	mu           sync.Mutex        // not held while anything is read
	listing      bool              // a look lists the processes
	listed       time.Time         // when the processes were last listed
	listDuration time.Duration     // how long that took
	known        map[int]*resident // each listing makes a new map, and no look changes it
}

// A resident is a process in the census.
type resident struct {
	inode        uint64 // of its /proc directory; it tells processes with the same id apart
	session      int    // when the process was first seen: it can leave a session, but not join one
	kernelThread bool
	since        time.Time // when the process was started

	// census.mu guards these.
	nextLook     time.Time // when to look at it again, at the latest
	lastWait     time.Time // when it was last seen waiting for any terminal
	lastTerminal pts       // the last of the terminals looked for that it was seen waiting for
}

// allProcesses is a global, because it is a cache: all of it can be found again.
var allProcesses census

const (
	tick = time.Second / proc.TicksPerSecond

	// The processes are listed again after listShare times as long as the last listing took, but
	// not before minListInterval, and at the latest after maxInterval. (On a busy machine a listing
	// lasts long without using much time of a processor.)
	listShare       = 50
	minListInterval = 10 * time.Millisecond

	// maxInterval is also the longest time between two looks at the same process.
	maxInterval = time.Second

	// A process that has waited for a terminal within this time is looked at each time. It may only
	// have stopped waiting for a moment, to deal with some other event.
	recentWait = 10 * time.Second
)

// members returns the processes that may be in the view's session.
func (c *census) members(v *view) []int {
	var found []int
	for pid, p := range c.list(v.r) {
		if p.session == v.session {
			found = append(found, pid)
		}
	}
	return found
}

// list returns the processes. It lists them again, unless the last listing is recent or another
// look is listing them. In that case it returns the last listing.
func (c *census) list(r *reader) map[int]*resident {
	begin := time.Now()
	c.mu.Lock()
	last := c.known
	if begin.Sub(c.listed) < min(max(minListInterval, listShare*c.listDuration), maxInterval) ||
		c.listing && last != nil {
		c.mu.Unlock()
		return last
	}
	c.listing = true
	c.mu.Unlock()
	known := make(map[int]*resident, len(last))
	now, _ := Uptime()
	for pid, inode := range r.numericInodes("/proc") {
		if p := last[pid]; p != nil && p.inode == inode {
			known[pid] = p
		} else if s, ok := r.stat(pid); ok {
			age := max(0, now-time.Duration(s.Start)*tick)
			known[pid] = &resident{inode: inode, session: s.Session, kernelThread: s.kernelThread,
				since: begin.Add(-age)}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.listing, c.listed = known, false, time.Now()
	c.listDuration = c.listed.Sub(begin)
	return known
}

// waitingStrangers returns the processes outside the view that wait for the terminal, such as a
// pinentry of a gpg-agent, a tmux server, or a daemon that the shell has left behind.
//
// It does not look at every process each time. If a process has not waited for a terminal recently,
// the time until the next look at it is the process's age, but at most a second. So new processes
// are looked at often, and old ones once a second.
func (c *census) waitingStrangers(v *view, t pts) (found []*process) {
	c.mu.Lock()
	all := c.known
	c.mu.Unlock()
	for pid, known := range all {
		if known.kernelThread || v.byID[pid] != nil {
			continue
		}
		due, waited := c.isDue(known, t)
		if !due {
			continue
		}
		p := v.newStranger(pid)
		if p == nil {
			continue
		}
		if len(p.waits) == 0 && waited {
			// It may soon wait again, as a pinentry does that is drawing its window.
			v.countTurns(p)
			v.strangerRuns = v.strangerRuns || p.active > 0
		}
		waits := p.waitsFor(t)
		if waits {
			found = append(found, p)
		}
		c.add(known, p, t, waits)
	}
	return found
}

// isDue reports in due whether this look should look at the process. Other looks then leave the
// process out, unless it has waited for a terminal recently. waited reports that it has, and that
// the terminal was t.
func (c *census) isDue(known *resident, t pts) (due, waited bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	recent := !known.lastWait.IsZero() && now.Sub(known.lastWait) < recentWait
	if !recent && now.Before(known.nextLook) {
		return false, false
	}
	known.nextLook = now.Add(min(now.Sub(known.since), maxInterval))
	return true, recent && known.lastTerminal == t
}

// add records what a look for the readers of t has seen of the process.
func (c *census) add(known *resident, p *process, t pts, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p.waits) > 0 {
		known.lastWait = time.Now()
	}
	if waits {
		known.lastTerminal = t
	}
}

// newStranger looks at a process outside the view. It returns nil if there is no such process.
func (v *view) newStranger(pid int) *process {
	s, ok := v.r.stat(pid)
	if !ok {
		return nil
	}
	p := &process{stat: s, stranger: true, tty: v.terminalOf(s)}
	if v.readWaits(p); len(p.waits) > 0 {
		v.countTurns(p)
	}
	return p
}

// numericInodes returns the inodes of the files in dir whose names are positive numbers, by number.
func (r *reader) numericInodes(dir string) map[int]uint64 {
	found := map[int]uint64{}
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return found
	}
	defer unix.Close(fd)
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.Getdents(fd, r.buf) })
		if err != nil || n <= 0 {
			return found
		}
		// struct linux_dirent64: inode (8 bytes), offset (8), length of the record (2), type (1),
		// name, zero byte
		for entries := r.buf[:n]; len(entries) > 19; {
			size := int(binary.NativeEndian.Uint16(entries[16:]))
			name, _, _ := bytes.Cut(entries[19:size], []byte{0})
			if pid, err := strconv.Atoi(string(name)); err == nil && pid > 0 {
				found[pid] = binary.NativeEndian.Uint64(entries)
			}
			entries = entries[size:]
		}
	}
}
