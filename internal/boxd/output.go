//go:build linux

package main

import (
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// An output keeps what a program has written to its standard output or error and a client may still
// ask for. It has one writer, and readers that come and go.
//
// Mostly it is a ring in memory: what the client has acknowledged makes room, and when there is no
// room, the program waits, as at a full pipe. So nothing is lost while no client is connected. For
// jobs it is a spool, a file without a name. That keeps the last bytes, and while no client is
// connected the program never waits.
type output struct {
	mu     sync.Mutex
	change *sync.Cond
	ring   []byte // the byte at offset i is at ring[i % len(ring)]
	// how many acknowledged bytes are kept all the same, for a client that has seen none of them
	history int
	spool   *os.File
	most    int64 // bytes that the spool keeps: the byte at offset i is at (i-base) % most
	base    int64
	begin   int64 // the offset of the oldest byte kept
	end     int64 // the offset behind the newest
	acked   int64 // the client has everything before this offset
	closed  bool  // nothing more comes

	followed bool // a client reads: a spool waits for it, rather than drop what it has not read
}

const (
	ringFirst = 4 << 10
	ringMax   = 512 << 10
	// terminalHistory is how much of a session's past output a client can read that takes the box
	// over: as much as a screen is rendered from.
	terminalHistory = 256 << 10
)

func newOutput(history int) *output {
	o := &output{history: history}
	o.change = sync.NewCond(&o.mu)
	return o
}

// spoolLeast is how much of an output a spool keeps at least: what is on its way to a client.
const spoolLeast = 1 << 20

// newSpool makes an output in a file without a name, which keeps the last most bytes.
func newSpool(most int64) (*output, error) {
	o := newOutput(0)
	o.most = max(most, spoolLeast)
	for _, dir := range []string{"/tmp", "/var/tmp", ".", "/dev/shm"} {
		f, err := os.CreateTemp(dir, ".sandshell-job-")
		if err != nil {
			continue
		}
		os.Remove(f.Name())
		if _, err = f.WriteAt([]byte{0}, 0); err == nil { // a full disk lets a file be made
			o.spool = f
			return o, nil
		}
		f.Close()
	}
	var err error
	o.spool, err = memorySpool()
	return o, err
}

func memorySpool() (*os.File, error) {
	fd, err := unix.MemfdCreate("spool", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "spool"), nil
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
		return o.writeSpool(p)
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

// writeSpool is write, of a spool; o.mu is held. It waits only for a client that is there: without
// one, the oldest bytes give way.
func (o *output) writeSpool(p []byte) bool {
	for len(p) > 0 {
		if o.closed {
			return false
		}
		at := (o.end - o.base) % o.most
		n := min(int64(len(p)), o.most-at)
		if o.followed && o.end+n-o.acked > o.most {
			o.change.Wait()
			continue
		}
		o.begin = max(o.begin, o.end+n-o.most)
		if _, err := o.spool.WriteAt(p[:n], at); err != nil {
			if !o.makeDo() {
				again := time.AfterFunc(100*time.Millisecond, o.wake) // others may free memory
				o.change.Wait()
				again.Stop()
			}
			continue
		}
		o.end += n
		p = p[n:]
		o.change.Broadcast()
	}
	return true
}

// makeDo goes on without the disk's growing: in the room that the spool has there, if that is
// enough, else in memory. o.mu is held.
func (o *output) makeDo() bool {
	if used := o.end - o.base; used >= spoolLeast && used < o.most {
		o.most = used
		return true
	}
	from := max(o.begin, o.end-spoolLeast)
	if o.followed {
		from = min(from, max(o.acked, o.begin))
	}
	rest := make([]byte, o.end-from)
	for got := rest; len(got) > 0; {
		n, err := o.readSpool(got, o.end-int64(len(got)))
		if err != nil {
			return false
		}
		got = got[n:]
	}
	f, err := memorySpool()
	if err != nil {
		return false
	}
	if _, err := f.WriteAt(rest, 0); err != nil {
		f.Close()
		return false
	}
	o.spool.Close()
	o.spool, o.base, o.begin, o.most = f, from, from, max(spoolLeast, int64(len(rest)))
	return true
}

// readSpool reads what is in one piece in the spool; o.mu is held.
func (o *output) readSpool(p []byte, offset int64) (int, error) {
	at := (offset - o.base) % o.most
	return o.spool.ReadAt(p[:min(int64(len(p)), o.most-at)], at)
}

// follow begins a client's reading at offset, or at the nearest byte that there is; -1 asks for
// the oldest. A spool waits for this client from now on.
func (o *output) follow(offset int64) (from int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from = min(max(offset, o.begin), o.end)
	if o.spool != nil {
		o.followed, o.acked = true, max(o.acked, from)
		if offset < 0 {
			o.acked = from
		}
	}
	return from
}

// unfollow says that no client reads.
func (o *output) unfollow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.followed = false
	o.change.Broadcast()
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

// read copies what there is from offset on; if there is nothing yet, it waits. It returns io.EOF at
// the output's end. To end a read, close over and call wake: it then returns 0 and no error.
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
		return o.readSpool(p[:n], offset)
	}
	at := int(offset % int64(len(o.ring)))
	copied := copy(p[:n], o.ring[at:])
	copy(p[copied:n], o.ring)
	return n, nil
}

// wake has all blocked readers look again whether they are to end, and a blocked writer whether
// there is room.
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
