package procfs

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"golang.org/x/sys/unix"
)

// A census knows the machine's processes, for all looks. To list them, and even more to ask each,
// takes too long to do for each look.
type census struct {
	mu     sync.Mutex
	listed time.Time
	took   time.Duration
	known  map[int]*resident
}

// A resident is a process in the census.
type resident struct {
	inode   uint64 // of its directory: another process with the same id has another
	session int    // when it was seen first. A process can leave a session, but not join one
	kernel  bool   // a thread of the kernel
	since   time.Time
	next    time.Time // when it is to be asked again, at the latest
	// when it was last found to wait for a terminal. What wakes it may be nothing to it
	waited time.Time
	at     pts // the terminal of a look that it was last found to wait for
}

// everyone holds nothing but what can be found again.
var everyone census

const (
	tick      = time.Second / proc.TicksPerSecond
	listShare = 50                    // listing takes at most this part of the time
	listOften = 10 * time.Millisecond // at most
	// and list: a busy machine makes a listing last, which costs nothing
	askAtLeast = time.Second
	// who waited for a terminal is asked at each look for so long
	lately = 10 * time.Second
)

// members returns the processes that may be of the view's session.
func (c *census) members(v *view) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list(v.r)
	var found []int
	for pid, p := range c.known {
		if p.session == v.session {
			found = append(found, pid)
		}
	}
	return found
}

// list brings the census up to date if it was long ago.
func (c *census) list(r *reader) {
	begin := time.Now()
	if begin.Sub(c.listed) < min(max(listOften, listShare*c.took), askAtLeast) {
		return
	}
	known := make(map[int]*resident, len(c.known))
	now, _ := Uptime()
	for pid, inode := range r.inodes("/proc") {
		if p := c.known[pid]; p != nil && p.inode == inode {
			known[pid] = p
		} else if s, ok := r.stat(pid); ok {
			age := max(0, now-time.Duration(s.Start)*tick)
			known[pid] = &resident{inode: inode, session: s.Session, kernel: s.kernel,
				since: begin.Add(-age)}
		}
	}
	c.known, c.listed = known, time.Now()
	c.took = c.listed.Sub(begin)
}

// strangers returns those processes outside the view that wait for the terminal: of a gpg-agent, a
// tmux server, a daemon that the shell has left behind.
//
// A process that has waited for no terminal lately is asked again after as long as it has been
// there, but at least once a second: new processes often, and all others hardly ever.
func (c *census) strangers(v *view, t pts) (found []*process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for pid, known := range c.known {
		waited := !known.waited.IsZero() && now.Sub(known.waited) < lately
		if known.kernel || v.byID[pid] != nil || !waited && now.Before(known.next) {
			continue
		}
		known.next = now.Add(min(now.Sub(known.since), askAtLeast))
		p := v.stranger(pid)
		if p == nil {
			continue
		}
		if len(p.waits) > 0 {
			known.waited = now
		} else if waited && known.at == t {
			// it may wait again: a pinentry that has drawn its window anew
			v.threads(p)
			v.stirs = v.stirs || p.active > 0
		}
		if p.waitsFor(t) {
			known.at = t
			found = append(found, p)
		}
	}
	return found
}

// stranger looks at a process outside the view.
func (v *view) stranger(pid int) *process {
	s, ok := v.r.stat(pid)
	if !ok {
		return nil
	}
	p := &process{stat: s, stranger: true, tty: v.terminalOf(s)}
	if v.see(p); len(p.waits) > 0 {
		v.threads(p)
	}
	return p
}

// inodes returns the directories in a directory whose names are numbers, with their inodes.
func (r *reader) inodes(dir string) map[int]uint64 {
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
		// struct linux_dirent64: 8 bytes inode, 8 offset, 2 length of the record, 1 type, the name
		// and a zero byte
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
