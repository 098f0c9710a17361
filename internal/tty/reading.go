package tty

import (
	"sync/atomic"
	"syscall"
)

// A Reading says whether whoever reads a terminal's master has dealt with all that the terminal has
// shown. It is for one reader, which reads with Wait, and deals with what it got before it reads
// again.
type Reading struct{ waits atomic.Bool }

// Wait waits until the master is readable, and calls read with its descriptor, as master.Read does.
// read returns false if it would have had to wait.
func (r *Reading) Wait(master syscall.RawConn, read func(fd uintptr) bool) error {
	err := master.Read(func(fd uintptr) bool {
		// This comes before the read: from the moment when the kernel has given the data away, and
		// until the next Wait, the reader has data that it has not dealt with.
		r.waits.Store(false)
		if read(fd) {
			return true
		}
		r.waits.Store(true)
		return false
	})
	r.waits.Store(false) // the master may have been closed
	return err
}

// Done reports whether all that the terminal had shown before the call has been read and dealt
// with.
func (r *Reading) Done(master syscall.Conn) bool {
	return r.waits.Load() && !Readable(master) && r.waits.Load()
}
