//go:build linux

package main

import (
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// An output keeps what a program has written to its standard output or error and a client may still
// ask for. One goroutine writes to it (fill). Readers come and go.
//
// Most outputs are a ring in memory. What the client has acknowledged makes room. When there is no
// room, the program waits, as at a full pipe. So nothing is lost while no client is connected.
//
// The output of a job is a spool, a file without a name. It keeps the last bytes, and while no
// client is connected the program never waits. The disk may be slow: the file is read and written
// without mu, at positions that were determined with mu.
type output struct {
	mu     sync.Mutex
	change *sync.Cond
	ring   []byte // the byte at offset i is at ring[i % len(ring)]
	// history is how many acknowledged bytes the ring keeps, for a client that takes the box over.
	history int
	spool   spoolFile // nil if there is a ring; only the writer replaces it
	limit   int64     // bytes that the spool keeps: the byte at offset i is at (i-base) % limit
	base    int64
	begin   int64       // the offset of the oldest byte kept
	end     int64       // the offset after the newest byte
	acked   int64       // the client has everything before this offset
	closed  bool        // nothing more is written
	later   *time.Timer // wakes the readers; nil until it is first needed

	// A client reads: a spool waits for it, and drops nothing that it has not read.
	followed bool
	readers  map[*attachment]int64 // what each client of a spool has
}

const (
	ringFirst = 4 << 10
	ringMax   = 512 << 10
	// terminalHistory is how much past output a client can read when it takes over a session. A
	// screen is rendered from as much.
	terminalHistory = 256 << 10
)

func newOutput(history int) *output {
	o := &output{history: history, readers: map[*attachment]int64{}}
	o.change = sync.NewCond(&o.mu)
	return o
}

// fill writes everything read from r, up to its end, and closes the output.
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
// Only one goroutine may call it.
func (o *output) write(p []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool != nil {
		return o.writeSpoolLocked(p)
	}
	hold := onlyBegins(p)
	for len(p) > 0 {
		if o.closed {
			return false
		}
		free := o.makeRoomLocked(len(p))
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
		if !hold {
			o.change.Broadcast()
		}
	}
	if hold {
		o.wakeLaterLocked()
	}
	return true
}

// holdTime is how long a shell's prompts and Begin markers wait for the output that follows. Of a
// short command, all then goes in one message: each message wakes a program at each step of the way
// to the client.
const holdTime = 2 * time.Millisecond

// wakeLaterLocked makes the readers look for new output after holdTime. If more output comes before
// that, they look then.
func (o *output) wakeLaterLocked() {
	if o.later == nil {
		o.later = time.AfterFunc(holdTime, o.wake)
	} else {
		o.later.Reset(holdTime)
	}
}

// follow begins a client's reading at offset, or at the nearest byte that is kept; -1 asks for the
// oldest. From then on a spool waits for this client. A spool may have several clients.
func (o *output) follow(who *attachment, offset int64) (from int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from = min(max(offset, o.begin), o.end)
	if o.spool == nil {
		o.acked = min(o.acked, from) // another client may have read further
		return from
	}
	o.readers[who] = from
	o.ackSlowestLocked()
	return from
}

// unfollow says that a client no longer reads.
func (o *output) unfollow(who *attachment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.readers, who)
	o.ackSlowestLocked()
	o.change.Broadcast()
}

// ackSlowestLocked sets acked to the offset up to which all clients of a spool have the output.
func (o *output) ackSlowestLocked() {
	if o.followed = len(o.readers) > 0; o.followed {
		o.acked = slices.Min(slices.Collect(maps.Values(o.readers)))
	}
}

// makeRoomLocked makes room in the ring for up to n bytes, and returns for how many there is room.
func (o *output) makeRoomLocked(n int) int {
	wanted := min(n, ringMax)
	o.begin = max(o.begin, min(o.acked, o.end-int64(o.history)))
	if used := int(o.end - o.begin); len(o.ring)-used < wanted && len(o.ring) < ringMax {
		o.growLocked(used + wanted)
	}
	if missing := wanted - (len(o.ring) - int(o.end-o.begin)); missing > 0 { // drop some history
		o.begin = max(o.begin, min(o.begin+int64(missing), o.acked))
	}
	return len(o.ring) - int(o.end-o.begin)
}

func (o *output) growLocked(size int) {
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

// read copies output from offset on. If there is none yet, it waits. At the output's end it returns
// io.EOF. To end a blocked read, close over and call wake: read then returns 0 and no error.
func (o *output) read(p []byte, offset int64, over <-chan struct{}) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
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
		if offset < o.begin { // too late: another reader has acknowledged it, or it was freed
			return 0, io.ErrUnexpectedEOF
		}
		p := p[:min(int64(len(p)), o.end-offset)]
		if o.spool == nil {
			at := int(offset % int64(len(o.ring)))
			copied := copy(p, o.ring[at:])
			copy(p[copied:], o.ring)
			return len(p), nil
		}
		if n, err := o.readSpoolLocked(p, offset); err != errMoved {
			return n, err
		}
	}
}

// wake makes all blocked readers check whether they should end, and a blocked writer whether there
// is room.
func (o *output) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change.Broadcast()
}

// ack says that the client has everything before offset.
func (o *output) ack(who *attachment, offset int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool != nil {
		if before, reads := o.readers[who]; reads && offset > before && offset <= o.end {
			o.readers[who] = offset
			o.ackSlowestLocked()
			o.change.Broadcast()
		}
		return
	}
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

// free closes the output and drops what it keeps. A reader that is left finds that it comes too
// late, or the output's end.
func (o *output) free() {
	o.close()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spool != nil {
		o.spool.Close()
	}
	o.begin, o.ring = o.end, nil
}
