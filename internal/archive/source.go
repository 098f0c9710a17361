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

// resolve returns the name of the file at path, and a path to it without "..": filepath.Join may
// clean such a path. The name of a root of the file system is ".". If path ends in a slash and
// names a link to a directory, the resolved path is the directory's and the name is the link's.
func resolve(path string) (resolved, name string, err error) {
	if path == "" {
		return "", "", &fs.PathError{Op: "copy", Path: path, Err: syscall.ENOENT}
	}
	if endsInSlash(path) {
		info, err := os.Stat(path)
		if err != nil {
			return "", "", copyError(path, err)
		}
		if !info.IsDir() { // on some systems Stat ignores the slash
			return "", "", copyError(path, syscall.ENOTDIR)
		}
	}
	dir, name := splitPath(path)
	switch name {
	case "", ".", "..": // find the directory's name as pwd -P does
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
		if dir, name = splitPath(path); name == "" {
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

// A source is the place of a file to pack. Files below the root are opened relative to open
// directories, because an absolute path may be longer than the system accepts.
type source struct {
	in    *os.Root // path is relative to it; nil: path is one of this machine
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

// allOpenDepth and openInterval bound the directories that are open at once. Down to the depth
// allOpenDepth, more than almost any tree has, every directory is open. Below it, one in
// openInterval is.
const allOpenDepth, openInterval = 64, 32

// openDir returns a directory as the source of its files, and a function that closes it.
func (s source) openDir() (source, func(), error) {
	var root *os.Root
	var err error
	switch {
	case s.in == nil:
		root, err = os.OpenRoot(s.path)
	case s.depth < allOpenDepth || s.depth%openInterval == 0:
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
