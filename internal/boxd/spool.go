//go:build linux

package main

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A spoolFile is an *os.File. Closing it frees nothing that a read or a write still uses.
type spoolFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// spoolMin is how much of an output a spool keeps at least: what is on its way to a client.
const spoolMin = 1 << 20

// newSpool makes an output in a file without a name, which keeps the last limit bytes.
func newSpool(limit int64) (*output, error) {
	o := newOutput(0)
	o.limit = max(limit, spoolMin)
	for _, dir := range []string{"/tmp", "/var/tmp", ".", "/dev/shm"} {
		f, err := os.CreateTemp(dir, ".sandshell-job-")
		if err != nil {
			continue
		}
		os.Remove(f.Name())
		if _, err = f.WriteAt([]byte{0}, 0); err == nil { // a file can be made on a full disk
			o.spool = f
			return o, nil
		}
		f.Close()
	}
	f, err := memorySpool()
	if err != nil {
		return nil, err
	}
	o.spool = f
	return o, nil
}

func memorySpool() (*os.File, error) {
	fd, err := unix.MemfdCreate("spool", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "spool"), nil
}

// writeSpoolLocked appends p to the spool. It waits only for a client that is connected: without
// one, it overwrites the oldest bytes. It unlocks mu while it writes to the file.
func (o *output) writeSpoolLocked(p []byte) bool {
	for len(p) > 0 {
		if o.closed {
			return false
		}
		at := (o.end - o.base) % o.limit
		n := min(int64(len(p)), o.limit-at)
		if o.followed && o.end+n-o.acked > o.limit {
			o.change.Wait()
			continue
		}
		// begin moves before the write, so that no reader takes data that is half overwritten.
		o.begin = max(o.begin, o.end+n-o.limit)
		o.mu.Unlock()
		_, err := o.spool.WriteAt(p[:n], at)
		o.mu.Lock()
		goesOn := err == nil
		if goesOn {
			o.end += n
			p = p[n:]
			o.change.Broadcast()
		} else if !o.closed {
			goesOn = o.shrinkSpoolLocked()
		}
		if !goesOn && !o.closed {
			again := time.AfterFunc(100*time.Millisecond, o.wake) // others may free memory
			o.change.Wait()
			again.Stop()
		}
	}
	return true
}

// errMoved says that the spool was moved to memory while it was read.
var errMoved = errors.New("the spool has moved")

// readSpoolLocked reads up to the place where the spool wraps around. It unlocks mu during the
// read.
func (o *output) readSpoolLocked(p []byte, offset int64) (int, error) {
	spool, at := o.spool, (offset-o.base)%o.limit
	p = p[:min(int64(len(p)), o.limit-at)]
	o.mu.Unlock()
	n, err := spool.ReadAt(p, at)
	o.mu.Lock()
	switch {
	case o.spool != spool:
		return 0, errMoved
	case offset < o.begin: // the writer has overwritten it
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// shrinkSpoolLocked is called when the file cannot grow. It limits the spool to the room that the
// file has, if that is enough, or moves the spool to memory. It unlocks mu while it copies.
func (o *output) shrinkSpoolLocked() bool {
	if used := o.end - o.base; used >= spoolMin && used < o.limit {
		o.limit = used
		return true
	}
	from := max(o.begin, o.end-spoolMin)
	if o.followed {
		from = min(from, max(o.acked, o.begin))
	}
	o.begin = from // a client that comes from here on begins there
	old, base, limit := o.spool, o.base, o.limit
	kept := make([]byte, o.end-from)
	o.mu.Unlock()
	f, err := copySpool(kept, old, from-base, limit)
	o.mu.Lock()
	if err != nil {
		return false
	}
	if o.closed { // free may have been called
		f.Close()
		return false
	}
	old.Close()
	o.spool, o.base, o.limit = f, from, max(spoolMin, int64(len(kept)))
	return true
}

// copySpool makes a spool in memory that begins with len(buf) bytes of another, which keeps limit
// bytes. at is where they begin in the other, which may be beyond limit.
func copySpool(buf []byte, from io.ReaderAt, at, limit int64) (*os.File, error) {
	for rest := buf; len(rest) > 0; {
		n, err := from.ReadAt(rest[:min(int64(len(rest)), limit-at%limit)], at%limit)
		if err != nil {
			return nil, err
		}
		rest, at = rest[n:], at+int64(n)
	}
	f, err := memorySpool()
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(buf, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
