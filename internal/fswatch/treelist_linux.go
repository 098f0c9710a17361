package fswatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// watchEntry watches a directory that is new in dir, and reports what is below it.
func (w *Tree) watchEntry(dir *node, name string) {
	// If the path leads to another directory now, because one above the root was moved, the path of
	// the new one is wrong too.
	if wd, err := addWatch(w.file, w.path, treeEvents); err != nil ||
		wd != w.root.wd {
		w.ended = true
		return
	}
	fd, ok := w.open(dir)
	if !ok {
		dir.unwatched = append(dir.unwatched, name)
		return
	}
	defer unix.Close(fd)
	if err := w.watchAt(fd, name, &node{name: name, parent: dir}, true); err != nil {
		w.report(sandbox.FileOverflow, "", "")
	}
}

// open opens a directory that is watched. ok is false if its path leads elsewhere, because it, or
// one above it, has been moved.
func (w *Tree) open(n *node) (fd int, ok bool) {
	fd, err := unix.Open(filepath.Join(w.path, n.below("")), openFlags, 0)
	if err != nil {
		return -1, false
	}
	wd, err := watchOpen(w.file, fd)
	if err == nil && wd == n.wd {
		return fd, true
	}
	if err == nil && w.nodes[wd] == nil {
		w.unwatch(wd)
	}
	unix.Close(fd)
	return -1, false
}

// openFlags are those of a directory that is to be watched and listed.
const openFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC |
	unix.O_NONBLOCK

// watchOpen watches an open directory, whatever its path is now.
func watchOpen(inotify *os.File, fd int) (wd int, err error) {
	return addWatch(inotify, fmt.Sprintf("/proc/self/fd/%d", fd), watchedEvents|unix.IN_ONLYDIR)
}

// watchMoved watches directories that could not be watched before it was known where the one they
// are in has been moved to.
func (w *Tree) watchMoved(n *node) {
	names := n.unwatched
	n.unwatched = nil
	for _, name := range names {
		w.watchEntry(n, name)
	}
	for _, child := range n.children {
		w.watchMoved(child)
	}
}

// watch watches the root, and all below it, without reporting what is there.
func (w *Tree) watch() error { return w.watchAt(unix.AT_FDCWD, w.path, w.root, false) }

// watchAt watches a directory of that name in an open one, and all below it. The error is that of
// the root, or says that there are no watches left. Other directories that cannot be watched are
// left out. What is watched and listed is what was opened, also if something else gets its name
// meanwhile. n is new, and becomes a child of its parent. If created is set, what is there is
// reported.
func (w *Tree) watchAt(dir int, name string, n *node, created bool) error {
	fd, err := unix.Openat(dir, name, openFlags, 0)
	if err != nil {
		if n == w.root {
			return err
		}
		return nil
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close()
	wd, err := watchOpen(w.file, fd)
	old := w.nodes[wd]
	w.readAll()
	switch {
	case err != nil && (n == w.root || errors.Is(err, unix.ENOSPC)):
		return err
	case err != nil, old != nil && n.isBelow(old): // a mount of what it is in
		return nil
	case n != w.root && w.mentioned[entry{n.parent.wd, name}] > 0:
		if old == nil {
			w.unwatch(wd)
		}
		return nil
	case old != nil: // it was somewhere else: the event that says so comes, or never will
		old.parent.drop(old)
	}
	if n != w.root {
		n.parent.attach(name, n)
	}
	n.wd, w.nodes[wd] = wd, n
	entries, _ := d.ReadDir(-1) // those before an error
	w.readAll()
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return tempname.Hidden(e.Name()) || w.mentioned[entry{wd, e.Name()}] > 0
	})
	for _, e := range entries {
		if created {
			w.report(sandbox.FileCreated, n.below(e.Name()), "")
		}
		if e.IsDir() {
			child := &node{name: e.Name(), parent: n}
			if err := w.watchAt(fd, e.Name(), child, created); err != nil {
				return err
			}
		}
	}
	return nil
}
