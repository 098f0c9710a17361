package fswatch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// A Tree is an inotify instance that watches a directory and all directories below it, each with a
// watch of its own. A directory is watched first and listed then, so nothing is missed in between.
//
// A list is newer than the events that are still queued, so it is used only for entries that none
// of these events mentions. Of the others, the events tell, one after the other.
type Tree struct {
	file  *os.File
	path  string // the root's, without symbolic links
	buf   []byte
	ended bool
	root  *node
	nodes map[int]*node // by their watch descriptors

	queue     []kernelEvent // that have been read, and not handled
	mentioned map[entry]int // how many events of the queue create, remove or move an entry
	departed  []*departure  // the last ones
	events    []sandbox.FileEvent
}

// An entry is one of a directory that is watched.
type entry struct {
	wd   int
	name string
}

// A node is a directory that is watched.
type node struct {
	wd       int
	name     string
	parent   *node // nil for the root, and for what is no longer in the tree
	children map[string]*node
	// unwatched are directories in it that could not be watched, because it had been moved: they
	// are when the event that says where comes.
	unwatched []string
}

// A departure is an entry that was moved away. If it was moved to another place in the tree, the
// event with the same cookie, which says where, follows soon, but perhaps not at once.
type departure struct {
	cookie uint32
	name   string // the path it had
	dir    *node  // nil: it was no directory that is watched
	held   []kernelEvent
}

// How many departures are remembered, how many events of what is below each, and how many events
// are read before they are handled: more count as lost.
const (
	departuresMax = 16
	heldMax       = 256
	queueMax      = 100_000
)

// treeEvents are the same for all directories: to watch one again replaces its events.
const treeEvents = watchedEvents | unix.IN_DONT_FOLLOW

// A kernelEvent is what inotify reports.
type kernelEvent struct {
	entry  // name is empty for the directory itself
	what   uint32
	cookie uint32
}

// namesChanged are the events after which a name leads to something else.
const namesChanged = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO

// NewTree starts to watch a directory and all below it. It follows a symbolic link at name, and
// none below it.
func NewTree(name string) (*Tree, error) {
	if _, err := os.Stat(name); err != nil { // with the kernel's error for a loop
		return nil, err
	}
	path, err := filepath.EvalSymlinks(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, err
	}
	w := &Tree{path: path, buf: make([]byte, 64<<10), root: &node{}, nodes: map[int]*node{},
		mentioned: map[entry]int{}}
	if w.file, err = newInotify(); err != nil {
		return nil, err
	}
	if err := w.watch(); err != nil {
		w.file.Close()
		return nil, err
	}
	return w, nil
}

// Next is as that of a Watch. Names are paths below the root.
func (w *Tree) Next() ([]sandbox.FileEvent, error) {
	w.events = nil
	for !w.ended && len(w.events) == 0 {
		if err := w.read(); err != nil {
			return nil, err
		}
		w.handleQueue()
	}
	if len(w.events) > 0 {
		return w.events, nil
	}
	return nil, fmt.Errorf("%w: what is watched was removed or moved away", syscall.ENOENT)
}

// read waits for events, and adds them to the queue.
func (w *Tree) read() error {
	n, err := w.file.Read(w.buf)
	if err != nil {
		return err
	}
	var read []kernelEvent
	for b := w.buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
		read = append(read, kernelEvent{what: binary.NativeEndian.Uint32(b[4:]),
			cookie: binary.NativeEndian.Uint32(b[8:]),
			entry:  entry{int(int32(binary.NativeEndian.Uint32(b))), string(name)}})
		b = b[end:]
	}
	w.count(read, 1)
	w.queue = append(w.queue, read...)
	return nil
}

// readAll adds the events that are there to the queue, without waiting for more.
func (w *Tree) readAll() {
	conn, err := w.file.SyscallConn()
	for err == nil && len(w.queue) < queueMax {
		size := 0
		err = conn.Control(func(fd uintptr) { size, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		if err != nil || size == 0 {
			return
		}
		err = w.read()
	}
	if err == nil {
		w.count(w.queue, -1)
		w.queue = []kernelEvent{{what: unix.IN_Q_OVERFLOW}}
	}
}

// count counts events that are queued, or are queued no longer.
func (w *Tree) count(events []kernelEvent, n int) {
	for _, e := range events {
		if e.what&namesChanged == 0 {
			continue
		}
		if w.mentioned[e.entry] += n; w.mentioned[e.entry] == 0 {
			delete(w.mentioned, e.entry)
		}
	}
}

// handleQueue handles the events that are queued.
func (w *Tree) handleQueue() {
	for len(w.queue) > 0 && !w.ended {
		e := w.queue[0]
		w.queue = w.queue[1:]
		w.count([]kernelEvent{e}, -1)
		w.handle(e)
	}
}

// Close ends the watch. A Next under way returns.
func (w *Tree) Close() error { return w.file.Close() }

// handle handles an event of the kernel.
func (w *Tree) handle(e kernelEvent) {
	if e.what&unix.IN_Q_OVERFLOW != 0 {
		w.report(sandbox.FileOverflow, "", "")
		w.again()
		return
	}
	dir := w.nodes[e.wd]
	switch {
	case dir == nil: // it was not watched any more when this was read
	case dir == w.root && e.what&endEvents != 0:
		w.ended = true
	case e.what&unix.IN_IGNORED != 0:
		delete(w.nodes, e.wd)
	case e.what&endEvents != 0:
	case dir.top() != w.root:
		w.hold(dir.top(), e)
	case e.name == "": // of the directory itself; for any other, its parent says the same
		if op := opOf(e.what); dir == w.root && op != 0 {
			w.report(op, "", "")
		}
	case tempname.Hidden(e.name) && e.what&unix.IN_MOVED_FROM == 0:
	default:
		w.handleEntry(dir, e)
	}
}

// handleEntry handles the event of an entry of a directory in the tree.
func (w *Tree) handleEntry(dir *node, e kernelEvent) {
	name, op := dir.below(e.name), opOf(e.what)
	switch {
	case e.what&unix.IN_MOVED_FROM != 0:
		d := &departure{cookie: e.cookie, name: name, dir: dir.detach(e.name)}
		if w.departed = append(w.departed, d); len(w.departed) > departuresMax {
			w.forget(w.departed[0].dir)
			w.departed = w.departed[1:]
		}
		if !tempname.Hidden(e.name) {
			w.report(op, name, "")
		}
	case op == sandbox.FileRemoved:
		w.forget(dir.detach(e.name))
		w.report(op, name, "")
	case e.what&unix.IN_MOVED_TO != 0:
		w.arrive(dir, e, name)
	default:
		w.report(op, name, "")
		// A directory that is new, or that may be readable now.
		if e.what&unix.IN_ISDIR != 0 && dir.children[e.name] == nil {
			w.watchEntry(dir, e.name)
		}
	}
}

// arrive handles an entry that was moved to a directory in the tree.
func (w *Tree) arrive(dir *node, e kernelEvent, name string) {
	from := &departure{}
	for _, d := range w.departed {
		if d.cookie == e.cookie {
			from = d
		}
	}
	op, was := sandbox.FileCreated, from.name
	if base := filepath.Base(was); tempname.Hidden(base) { // a write or a copy
		if tempname.IsReplacing(base) {
			op = sandbox.FileWritten
		}
		was = ""
	}
	w.report(op, name, was)
	w.forget(dir.detach(e.name)) // an empty directory that this one replaces
	switch moved := from.dir; {
	case e.what&unix.IN_ISDIR == 0:
	case moved == nil || w.nodes[moved.wd] != moved:
		w.watchEntry(dir, e.name)
	default:
		dir.attach(e.name, moved)
		w.count(from.held, 1)
		w.queue = append(from.held, w.queue...)
		from.dir, from.held = nil, nil
		w.watchMoved(moved)
	}
}

// hold keeps an event of what is below a directory that has departed, until it is known where to.
func (w *Tree) hold(top *node, e kernelEvent) {
	for _, d := range w.departed {
		if d.dir == top {
			if d.held = append(d.held, e); len(d.held) > heldMax {
				d.held[0] = kernelEvent{what: unix.IN_Q_OVERFLOW}
				d.held = d.held[:1]
			}
			return
		}
	}
}

// eventsMax bounds what one Next returns: a directory that was moved into the tree may hold any
// number of files.
const eventsMax = 100_000

// report adds an event to those that Next returns. The last of too many is FileOverflow.
func (w *Tree) report(op sandbox.FileOp, name, from string) {
	switch n := len(w.events); {
	case n < eventsMax:
		w.events = append(w.events, sandbox.FileEvent{Op: op, Name: name, From: from})
	case n == eventsMax:
		w.events = append(w.events, sandbox.FileEvent{Op: sandbox.FileOverflow})
	}
}

// forget ends the watches of a directory that has left the tree, and of all below it.
func (w *Tree) forget(n *node) {
	if n == nil {
		return
	}
	if w.nodes[n.wd] == n {
		delete(w.nodes, n.wd)
		w.unwatch(n.wd)
	}
	for _, child := range n.children {
		w.forget(child)
	}
}

func (w *Tree) unwatch(wd int) {
	if conn, err := w.file.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { unix.InotifyRmWatch(int(fd), uint32(wd)) })
	}
}

// again watches the tree as it is now, after events were lost.
func (w *Tree) again() {
	before, wd := w.nodes, w.root.wd
	w.root, w.nodes = &node{}, map[int]*node{}
	w.queue, w.departed = nil, nil
	clear(w.mentioned)
	if err := w.watch(); w.root.wd != wd || err != nil && w.nodes[wd] == nil {
		w.ended = true
		return
	}
	for wd, n := range before {
		if w.nodes[wd] == nil {
			n.children = nil
			w.nodes[wd] = n
			w.forget(n)
		}
	}
}
