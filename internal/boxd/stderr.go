//go:build linux

package main

import (
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// A stderr is descriptor 2, to which Go's runtime writes why it ends boxd: a panic or a fatal
// error. The engine may remove the container and its log at that moment. So while an owner is
// connected, descriptor 2 is the standard error of that owner's "boxd join", and the owner reads
// boxd's last words there.
type stderr struct {
	log *os.File // what descriptor 2 was when boxd started

	mu     sync.Mutex
	owners []*os.File // the standard errors of the joins; the last one is descriptor 2
}

// openStderr returns the process's stderr. What ends boxd is written to the log too, except for the
// first line of a fatal error: the runtime prints that line before it knows that it is ending
// (throw and writeErrData in Go's runtime). For that reason SetCrashOutput alone cannot give it to
// the owner.
func openStderr() (*stderr, error) {
	fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	e := &stderr{log: os.NewFile(uintptr(fd), "log")}
	return e, debug.SetCrashOutput(e.log, debug.CrashOptions{})
}

// add makes f descriptor 2. f must be in non-blocking mode, so that a client that does not read
// cannot delay boxd's end. e may be nil.
func (e *stderr) add(f *os.File) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.owners = append(e.owners, f)
	e.setLocked()
}

// remove undoes add, if f was added. The caller closes f. e may be nil.
func (e *stderr) remove(f *os.File) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.owners, f); i >= 0 {
		e.owners = slices.Delete(e.owners, i, i+1)
		e.setLocked()
	}
}

func (e *stderr) setLocked() {
	f := e.log
	if n := len(e.owners); n > 0 {
		f = e.owners[n-1]
	}
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { unix.Dup3(int(fd), 2, 0) }) // if it fails, 2 stays
	}
}
