package procfs

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// An entry is a process's entry in /proc. The inode tells apart two processes that have had the
// same id: the kernel numbers the inodes of /proc one after the other (get_next_ino). It may number
// a process's inode anew while the process lives.
type entry struct {
	pid   int
	inode uint64
}

// A generation finds the processes that are not older than this one. It remembers the older ones,
// because with hundreds of processes it takes milliseconds to look at each again.
type generation struct {
	mu    sync.Mutex     // not held while anything is read
	begin int64          // of this process, as in proc.Process.Start
	older map[entry]bool // each call makes a new map
}

var ownGeneration generation

// young returns the ids of the processes that are not older than this one.
func (g *generation) young() []int {
	r := newReader()
	g.mu.Lock()
	known, begin := g.older, g.begin
	g.mu.Unlock()
	if known == nil {
		s, _ := r.stat(os.Getpid())
		begin = s.Start
	}
	var found []int
	older := map[entry]bool{}
	for _, e := range r.entries() {
		if !known[e] {
			s, ok := r.stat(e.pid)
			if !ok {
				continue
			}
			if s.Start >= begin {
				found = append(found, e.pid)
				continue
			}
		}
		older[e] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.older, g.begin = older, begin
	return found
}

// entries returns the processes in /proc.
func (r *reader) entries() (found []entry) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open("/proc", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	})
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.Getdents(fd, r.buf) })
		if err != nil || n <= 0 {
			return found
		}
		// struct linux_dirent64: d_ino, d_off, d_reclen, d_type, d_name
		const reclen, name = 16, 19
		for list := r.buf[:n]; len(list) > name; {
			size := int(binary.NativeEndian.Uint16(list[reclen:]))
			if size <= name || size > len(list) {
				return found
			}
			text, _, _ := bytes.Cut(list[name:size], []byte{0})
			if pid, err := strconv.Atoi(string(text)); err == nil && pid > 0 {
				found = append(found, entry{pid, binary.NativeEndian.Uint64(list)})
			}
			list = list[size:]
		}
	}
}
