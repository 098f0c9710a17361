package fswatch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/tempname"
	"github.com/sandshell/sandshell/sandbox"
)

// watchEntry watches a directory that is new in dir, and what is below it. If created is set, it
// reports what is there.
func (w *Tree) watchEntry(dir *node, name string, created bool) {
	// If the path leads to another directory now, because one above the root was moved, the path of
	// the new one is wrong too.
	if wd, err := addWatch(w.file, w.path, treeEvents); err != nil ||
		wd != w.root.wd {
		w.ended = true
		return
	}
	fd, ok := w.open(dir)
	if !ok {
		dir.unlisted = true
		return
	}
	defer unix.Close(fd)
	n := &node{}
	dir.attach(name, n)
	if err := w.watchAt(fd, name, n, created); err != nil {
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

// listAgain lists directories in which something could not be watched.
func (w *Tree) listAgain(n *node) {
	if n.unlisted {
		n.unlisted = false
		if fd, ok := w.open(n); ok {
			unix.Close(fd)
			if err := w.watch(n, true); err != nil {
				w.report(sandbox.FileOverflow, "", "")
			}
		} else {
			n.unlisted = true // moved again
		}
		return
	}
	for _, child := range n.children {
		w.listAgain(child)
	}
}

// watch watches a directory of the tree, and all below it. The error is that of the root, or says
// that there are no watches left. Other directories that cannot be watched are left out.
func (w *Tree) watch(n *node, created bool) error {
	return w.watchAt(unix.AT_FDCWD, filepath.Join(w.path, n.below("")), n, created)
}

// watchAt is watch for the entry of that name of an open directory. What is watched and listed is
// what was opened, also if something else gets its name meanwhile.
func (w *Tree) watchAt(dir int, name string, n *node, created bool) error {
	fd, err := unix.Openat(dir, name, openFlags, 0)
	if err != nil {
		n.parent.drop(n)
		if n == w.root {
			return err
		}
		return nil
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close()
	wd, err := watchOpen(w.file, fd)
	old := w.nodes[wd]
	switch {
	case err != nil && (n == w.root || errors.Is(err, unix.ENOSPC)):
		n.parent.drop(n)
		return err
	case old == n: // it is listed again
	case err != nil, old != nil && n.isBelow(old): // a mount of what it is in
		n.parent.drop(n)
		return nil
	case old != nil: // it was somewhere else: the event that says so comes, or never will
		old.parent.drop(old)
	}
	n.wd, w.nodes[wd] = wd, n
	for err == nil {
		var entries []os.DirEntry
		if entries, err = d.ReadDir(256); err != nil && err != io.EOF {
			return nil
		}
		for _, entry := range entries {
			name := entry.Name()
			if tempname.Hidden(name) {
				continue
			}
			if created && len(w.events) <= eventsMax {
				if n.listed == nil {
					n.listed = map[string]bool{}
					w.listing = append(w.listing, n)
				}
				n.listed[name] = true
				w.report(sandbox.FileCreated, n.below(name), "")
			}
			if entry.IsDir() {
				child := &node{}
				n.attach(name, child)
				if err := w.watchAt(fd, name, child, created); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
