// Package history saves the states of a directory, and brings them back. It works in the box, with
// the rights of the box's user.
//
// Contents are kept by their SHA-256 in a store: a directory with a few files, which only grow. A
// Save calls stat for each file. It reads a file only if its ctime, mtime, inode, size or mode
// differs from the last Save. Nothing can set a ctime, so this finds every change except writes
// through a shared mapping, whose times the kernel sets at the first write after a writeback. (With
// inotify, a Save could do without most stats. But it misses what is written through a hard link
// elsewhere, and what another machine writes on a shared file system. 20,000 stats take 20 to 40
// ms.)
//
// A Back replaces files by rename, and never writes into one: another name of it may be elsewhere.
// It reaches each file by the descriptor of its directory and follows no links, so that it stays in
// the directory. What it would remove or replace, it has saved before, and it checks by stat that
// this is still the same. There is no system call that does both, so a change between the check and
// the rename, some microseconds, is lost.
package history

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandshell/sandshell/sandbox"
)

// Limits bound what a History saves. Zero values mean the defaults.
type Limits struct {
	Entries int
	Bytes   int64
}

func (l Limits) withDefaults() Limits {
	if l.Entries <= 0 {
		l.Entries = sandbox.HistoryEntries
	}
	if l.Bytes <= 0 {
		l.Bytes = sandbox.HistoryBytes
	}
	return l
}

// maxDepth bounds the directories within each other. Each takes a descriptor while it is read.
const maxDepth = 500

// A History is the history of one directory. Its methods may be called concurrently, also from
// several processes: each waits for the others. It holds nothing open.
type History struct {
	dir    string // without symbolic links
	store  string
	limits Limits
}

// Open returns the history of a directory. base is a directory for stores, which need not exist but
// whose parent must. If base is within dir, the error is fs.ErrInvalid.
func Open(dir, base string, l Limits) (*History, error) {
	real, err := resolve(dir)
	if err != nil {
		return nil, err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(base))
	if err != nil {
		return nil, err
	}
	base = filepath.Join(parent, filepath.Base(base))
	if within(base, real) {
		return nil, fmt.Errorf("%w: the history of %s would be kept in it, in %s: give a "+
			"directory further down", fs.ErrInvalid, real, base)
	}
	return &History{dir: real, store: filepath.Join(base, storeName(real)),
		limits: l.withDefaults()}, nil
}

// OpenIn opens the history of a directory in the first of these bases that has it, or else in the
// first that is outside of the directory and can be made.
func OpenIn(dir string, bases []string, l Limits) (*History, error) {
	var usable *History
	var first error
	for _, base := range bases {
		h, err := Open(dir, base, l)
		if err == nil {
			err = usableBase(filepath.Dir(h.store))
		}
		switch {
		case err != nil && first == nil:
			first = err
		case err == nil && exists(h.store):
			return h, nil
		case err == nil && usable == nil:
			usable = h
		}
	}
	if usable == nil {
		return nil, first
	}
	return usable, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// within reports whether path is dir, or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
