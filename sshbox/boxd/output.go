//go:build linux

package main

import (
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// An output keeps what a program has written to its standard output or error and a client may still ask for. It has one writer, and readers that
// come and go.
//
// Mostly it is a ring in memory: what the client has acknowledged makes room, and when there is no room, the program waits, as at a full pipe. So
// nothing is lost while no client is connected. For jobs it is a spool, a file without a name: that keeps everything, and the program never waits.
type output struct {
	mu      sync.Mutex
	change  *sync.Cond
	ring    []byte // the byte at offset i is at ring[i % len(ring)]
	history int    // how many acknowledged bytes are kept all the same, for a client that has seen none of them
	spool   *os.File
	base    int64 // the offset of the first byte in the spool
	begin   int64 // the offset of the oldest byte kept
	end     int64 // the offset behind the newest
	acked   int64 // the client has everything before this offset
	closed  bool  // nothing more comes
}

const (
	ringFirst = 4 << 10
	ringMax   = 512 << 10
	// terminalHistory is how much of a session's past output a client can read that takes the box over: as much as a screen is rendered from.
	terminalHistory = 256 << 10
)

func newOutput(history int) *output {
	o := &output{history: history}
	o.change = sync.NewCond(&o.mu)
	return o
}

// newSpool makes an output in a file without a name: on a disk if one can be written to, else in memory.
func newSpool() (*output, error) {
	o := newOutput(0)
	for _, dir := range []string{"/tmp", "/var/tmp", ".", "/dev/shm"} {
		if f, err := os.CreateTemp(dir, ".sandshell-job-"); err == nil {
			os.Remove(f.Name())
			o.spool = f
			return o, nil
		}
	}
	fd, err := unix.MemfdCreate("spool", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	o.spool = os.NewFile(uintptr(fd), "spool")
	return o, nil
}

// fill writes all that r gives, until its end, and closes the output.
func (o *output) fill(r io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 && !o.write(buf[:n]) {
			break
		}
		if err != nil {
			break
		}
	}
	o.close()
}

// write appends p. It blocks while there is no room, and returns false once the output is closed.
func (o *output) write(p []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool != nil {
		if o.closed {
			return false
		}
		for {
			if _, err := o.spool.WriteAt(p, o.end-o.base); err == nil {
				o.end += int64(len(p))
				o.change.Broadcast()
				return true
			}
			if o.shrink() {
				continue
			}
			again := time.AfterFunc(100*time.Millisecond, o.wake) // others may make room on the disk
			o.change.Wait()
			again.Stop()
			if o.closed {
				return false
			}
		}
	}
	for len(p) > 0 {
		if o.closed {
			return false
		}
		free := o.room(len(p))
		if free == 0 {
			o.change.Wait()
			continue
		}
		n := min(free, len(p))
		at := int(o.end % int64(len(o.ring)))
		copied := copy(o.ring[at:], p[:n])
		copy(o.ring, p[copied:n])
		o.end += int64(n)
		p = p[n:]
		o.change.Broadcast()
	}
	return true
}

// shrink makes room in a spool whose disk is full: it puts what the client has not acknowledged in the place of what it has. It reports false if there is too
// little room for that yet: a client that reads on makes more. Nothing is given back to the disk before, because others may be faster to take it.
func (o *output) shrink() bool {
	if o.acked <= o.base || o.end-o.acked > min(ringMax, o.acked-o.base) {
		return false
	}
	rest := make([]byte, o.end-o.acked)
	if _, err := o.spool.ReadAt(rest, o.acked-o.base); err != nil && len(rest) > 0 {
		return false
	}
	if _, err := o.spool.WriteAt(rest, 0); err != nil {
		return false
	}
	if o.spool.Truncate(int64(len(rest))) != nil {
		return false
	}
	o.base, o.begin = o.acked, o.acked
	return true
}

// room makes room in the ring for up to n bytes, and returns for how many it could.
func (o *output) room(n int) int {
	wanted := min(n, ringMax)
	o.begin = max(o.begin, min(o.acked, o.end-int64(o.history)))
	if used := int(o.end - o.begin); len(o.ring)-used < wanted && len(o.ring) < ringMax {
		o.grow(used + wanted)
	}
	if missing := wanted - (len(o.ring) - int(o.end-o.begin)); missing > 0 { // history gives way
		o.begin = max(o.begin, min(o.begin+int64(missing), o.acked))
	}
	return len(o.ring) - int(o.end-o.begin)
}

func (o *output) grow(size int) {
	n := max(len(o.ring), ringFirst)
	for n < size && n < ringMax {
		n *= 2
	}
	ring := make([]byte, n)
	for i := o.begin; i < o.end; {
		from := o.ring[i%int64(len(o.ring)):]
		from = from[:min(int64(len(from)), o.end-i)]
		i += int64(copy(ring[i%int64(n):], from))
	}
	o.ring = ring
}

// start returns the offset at which a reader begins: the one that it wants or, if that byte is gone or not there yet, the nearest. -1 asks for the
// oldest byte.
func (o *output) start(offset int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return min(max(offset, o.begin), o.end)
}

// read copies what there is from offset on; if there is nothing yet, it waits. It returns io.EOF at the output's end. To end a read, close over and
// call wake: it then returns 0 and no error.
func (o *output) read(p []byte, offset int64, over <-chan struct{}) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for offset >= o.end {
		if o.closed {
			return 0, io.EOF
		}
		select {
		case <-over:
			return 0, nil
		default:
		}
		o.change.Wait()
	}
	n := int(min(int64(len(p)), o.end-offset))
	if offset < o.begin { // too late: another reader has acknowledged it
		return 0, io.ErrUnexpectedEOF
	}
	if o.spool != nil {
		return o.spool.ReadAt(p[:n], offset-o.base)
	}
	at := int(offset % int64(len(o.ring)))
	copied := copy(p[:n], o.ring[at:])
	copy(p[copied:n], o.ring)
	return n, nil
}

// wake has all blocked readers look again whether they are to end, and a blocked writer whether there is room.
func (o *output) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change.Broadcast()
}

// ack says that the client has everything before offset.
func (o *output) ack(offset int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if offset > o.acked && offset <= o.end {
		o.acked = offset
		o.change.Broadcast()
	}
}

// total returns how many bytes have been written.
func (o *output) total() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end
}

// close ends the output: nothing more is written, and a blocked writer returns.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.change.Broadcast()
}

// free closes the output and drops what it keeps. No reader is left.
func (o *output) free() {
	o.close()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool != nil {
		o.spool.Close()
	}
	o.ring = nil
}
