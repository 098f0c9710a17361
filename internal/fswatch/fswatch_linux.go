package fswatch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// A Watch is an inotify instance that watches one directory. To watch a file, it watches the file's
// directory: a program that replaces the file makes another inode, which a watch of the first inode
// would not see.
type Watch struct {
	file  *os.File
	only  string // the entry to report; "": all
	buf   []byte
	ended bool // the directory has been removed or moved

	// movedFrom is the name in the last event of an entry that was moved away, and cookie
	// identifies the event with the new name that belongs to it; 0: none. Between these two,
	// nothing else in the directory is renamed.
	movedFrom string
	cookie    uint32
}

const (
	entryEvents = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_ATTRIB |
		unix.IN_DELETE | unix.IN_MOVED_FROM
	endEvents     = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_UNMOUNT | unix.IN_IGNORED
	watchedEvents = entryEvents | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR |
		unix.IN_EXCL_UNLINK
)

// New starts to watch a directory's entries, or a file. It follows symbolic links.
func New(name string) (*Watch, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	w := &Watch{buf: make([]byte, 16<<10)}
	dir := name
	if !info.IsDir() {
		file, err := filepath.EvalSymlinks(name)
		if err != nil {
			return nil, err
		}
		dir, w.only = filepath.Split(file)
	}
	if w.file, err = newInotify(); err != nil {
		return nil, err
	}
	if _, err = addWatch(w.file, dir, watchedEvents); err != nil {
		w.file.Close()
		return nil, err
	}
	return w, nil
}

// newInotify opens an inotify instance. Its Close ends a Read under way, because the descriptor is
// non-blocking.
func newInotify() (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) {
		err = fmt.Errorf("%w: end other watches, or raise the limit fs.inotify.max_user_instances",
			err)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "inotify"), nil
}

// addWatch adds a watch, and returns its descriptor. If path is watched, it is that watch's.
func addWatch(inotify *os.File, path string, events uint32) (wd int, err error) {
	conn, err := inotify.SyscallConn()
	if err != nil {
		return -1, err
	}
	cerr := conn.Control(func(fd uintptr) { wd, err = unix.InotifyAddWatch(int(fd), path, events) })
	if cerr != nil {
		return -1, cerr
	}
	if errors.Is(err, unix.ENOSPC) {
		err = fmt.Errorf("%w for watches: end others, or raise the limit "+
			"fs.inotify.max_user_watches", err)
	}
	return wd, err
}

// Next waits for events, and returns them in the kernel's order. The error is fs.ErrNotExist once
// the directory no longer exists, and fs.ErrClosed after Close. Next must not be called
// concurrently.
func (w *Watch) Next() ([]sandbox.FileEvent, error) {
	for !w.ended {
		n, err := w.file.Read(w.buf)
		if err != nil {
			return nil, err
		}
		if events := w.parse(w.buf[:n]); len(events) > 0 {
			return events, nil
		}
	}
	return nil, fmt.Errorf("%w: what is watched was removed or moved away", syscall.ENOENT)
}

// parse returns the events in b, the kernel's, that are to be reported.
func (w *Watch) parse(b []byte) (events []sandbox.FileEvent) {
	for len(b) >= unix.SizeofInotifyEvent && !w.ended {
		what, cookie := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
		b = b[end:]
		e := w.event(what, cookie, string(name))
		if tempname.Hidden(e.Name) {
			continue
		}
		if e.Op == sandbox.FileCreated && tempname.Hidden(e.From) { // a write or a copy
			if tempname.IsReplacing(e.From) {
				e.Op = sandbox.FileWritten
			}
			e.From = ""
		}
		if e.Op == sandbox.FileOverflow || e.Op != 0 && (w.only == "" || w.only == e.Name) {
			events = append(events, e)
		}
	}
	return events
}

// event translates an event of the kernel. Op is 0 if there is nothing to report.
func (w *Watch) event(what, cookie uint32, name string) sandbox.FileEvent {
	e := sandbox.FileEvent{Name: name}
	e.Op = opOf(what)
	switch {
	case e.Op == 0:
		w.ended = w.ended || what&endEvents != 0
	case what&unix.IN_MOVED_TO != 0 && cookie != 0 && cookie == w.cookie:
		e.From = w.movedFrom
	case what&unix.IN_MOVED_FROM != 0:
		w.movedFrom, w.cookie = name, cookie
	}
	return e
}

// opOf returns what to report for an event of the kernel; 0: nothing.
func opOf(what uint32) sandbox.FileOp {
	switch {
	case what&unix.IN_Q_OVERFLOW != 0:
		return sandbox.FileOverflow
	case what&endEvents != 0:
	case what&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		return sandbox.FileCreated
	case what&unix.IN_MODIFY != 0:
		return sandbox.FileWritten
	case what&unix.IN_ATTRIB != 0:
		return sandbox.FileAttributes
	case what&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
		return sandbox.FileRemoved
	}
	return 0
}

// Close ends the watch. A Next under way returns.
func (w *Watch) Close() error { return w.file.Close() }
