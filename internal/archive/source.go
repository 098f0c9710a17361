package archive

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// resolve returns the name of what is at path, "." for a root of the file system, and a path to it
// that has no "..": names can be joined to that, and filepath.Join may clean it. A slash at the
// path's end follows a link to a directory, whose copy has the link's name.
func resolve(path string) (resolved, name string, err error) {
	if path == "" {
		return "", "", &fs.PathError{Op: "copy", Path: path, Err: syscall.ENOENT}
	}
	if endsInSlash(path) {
		info, err := os.Stat(path)
		if err != nil {
			return "", "", fault(path, err)
		}
		if !info.IsDir() { // not everywhere does Stat heed the slash
			return "", "", fault(path, syscall.ENOTDIR)
		}
	}
	dir, name := split(path)
	switch name {
	case "", ".", "..": // no name: that of the directory is found as pwd -P finds it
		if !filepath.IsAbs(path) {
			wd, err := os.Getwd()
			if err != nil {
				return "", "", err
			}
			path = wd + string(filepath.Separator) + path
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", "", err
		}
		if dir, name = split(path); name == "" {
			return path, ".", nil
		}
	default:
		if endsInSlash(path) {
			resolved, err = filepath.EvalSymlinks(path)
			return resolved, name, err
		}
	}
	if slices.Contains(strings.Split(filepath.ToSlash(dir), "/"), "..") {
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", "", err
		}
	}
	return filepath.Join(dir, name), name, nil
}

// A source is the place of a file to pack. Files below the root are reached from open directories:
// a path from the file system's root may be longer than the system accepts.
type source struct {
	in    *os.Root // nil: path is this machine's
	path  string
	depth int // of directories, below the root
}

func (s source) readlink() (string, error) {
	if s.in == nil {
		return os.Readlink(s.path)
	}
	return s.in.Readlink(s.path)
}

func (s source) open() (*os.File, error) {
	if s.in == nil {
		return os.OpenFile(s.path, os.O_RDONLY|openFlags, 0)
	}
	return s.in.OpenFile(s.path, os.O_RDONLY|openFlags, 0)
}

// openEach and openSome bound the directories that are open at once: down to the depth openEach,
// more than almost any tree has, every one; below it, one in openSome.
const openEach, openSome = 64, 32

// directory returns a directory as the source of its files, and a function that closes it.
func (s source) directory() (source, func(), error) {
	var root *os.Root
	var err error
	switch {
	case s.in == nil:
		root, err = os.OpenRoot(s.path)
	case s.depth < openEach || s.depth%openSome == 0:
		root, err = s.in.OpenRoot(s.path)
	default:
		return source{s.in, s.path, s.depth + 1}, func() {}, nil
	}
	if err != nil {
		return source{}, nil, err
	}
	return source{root, ".", s.depth + 1}, func() { root.Close() }, nil
}

// entries returns the entries of a directory, sorted by name. After an error some may be missing.
func (s source) entries() ([]fs.DirEntry, error) {
	f, err := s.in.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}
