// Package archive packs a file or directory into a tar archive, and unpacks such an archive: the
// two ends of a copy into a sandbox or out of it. The same code runs on both sides.
//
// # What is in an archive
//
// An archive has one root: a file, a link or a directory. The root's entry is the first, and has
// the name of what was packed, which is the copy's name unless another is given. All other entries
// are below it. Links are kept as links, and several names of one file as hard links. Permissions
// and times are kept. Owners are not: a copy belongs to the user who makes it. Sockets and devices
// are left out, because they have no contents. The format is GNU's, the only one in which busybox's
// tar reads long names. POSIX's extended headers hold the fractions of seconds and, from [Pack] to
// [Unpack], the holes of files.
//
// # Complete copies
//
// [Pack] writes tar's trailer only if there was no error, and [Unpack] fails without a trailer: tar
// itself accepts an archive that is cut off between two files. A file below the root that Pack
// cannot read is no such error: Pack leaves it out and reports it. Unpack makes the copy in a
// temporary directory beside its destination, and moves it there in the end. A directory that is
// copied onto a directory is added to it, file by file.
//
// # Errors
//
// Errors are *[fs.PathError], whose Err is a syscall.Errno if the system returned one. If the
// archive is complete but for some files, the error is a *sandbox.CopyError.
package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandshell/sandshell/internal/tempname"
)

// tempPrefix begins the names of the directories in which copies are made. Pack leaves out such
// directories: the archive that it writes may be unpacked into one of them at the same time.
const tempPrefix = tempname.Prefix + "copy-"

// ExpandHome replaces a leading ~, alone or before a slash, with the directory home.
func ExpandHome(path, home string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return home + path[1:]
	}
	return path
}

// splitPath returns the directory and the last element of a path, without slashes at its end. It
// does not clean the path, because a cleaned "link/.." would name another directory. If the path
// has no directory, dir is ".". If the path is a root of the file system, name is "".
func splitPath(path string) (dir, name string) {
	volume := len(filepath.VolumeName(path))
	for len(path) > volume+1 && os.IsPathSeparator(path[len(path)-1]) {
		path = path[:len(path)-1]
	}
	if dir, name = filepath.Split(path); dir == "" {
		dir = "."
	}
	return dir, name
}

// endsInSlash reports whether a path ends in a slash, so that it can only name a directory.
func endsInSlash(path string) bool { return path != "" && os.IsPathSeparator(path[len(path)-1]) }

// copyError returns err as an error of path. The path in an error of os.Root would be relative to
// the root.
func copyError(path string, err error) *fs.PathError {
	return &fs.PathError{Op: "copy", Path: path, Err: bareError(err)}
}

// bareError returns an error without its operation and file name.
func bareError(err error) error {
	var inPath *fs.PathError
	var inLink *os.LinkError
	var inCall *os.SyscallError
	switch {
	case errors.As(err, &inPath):
		return inPath.Err
	case errors.As(err, &inLink):
		return inLink.Err
	case errors.As(err, &inCall):
		return inCall.Err
	}
	return err
}
