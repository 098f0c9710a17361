// Package archive packs a file or directory into a tar archive, and unpacks such an archive: the two ends of a copy into a sandbox or
// out of it. The same code runs on both sides.
//
// # What is in an archive
//
// One root, a file, a link or a directory, whose entry is the first and whose name is that of what was packed: it is the copy's name
// where nobody gives another. All other entries are below it. Links are kept as links, several names of one file as hard links.
// Permissions and times are there, owners are not: a copy belongs to whoever makes it. Sockets and devices are left out, for there is
// nothing in them to copy. The format is GNU's: busybox's tar reads no long names but that way.
//
// # A copy is whole or is not
//
// [Pack] ends an archive with tar's trailer only if all went well, and [Unpack] wants to see it: tar itself takes an archive that
// breaks off between two files for a whole one. Until then the copy is in a temporary directory beside its destination, and is moved
// there at last. A directory that is copied onto a directory is added to it, file by file.
//
// # Errors
//
// They are *[fs.PathError], and Err is a syscall.Errno where the system gave one.
package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempPrefix begins the names of the directories in which copies are made. Pack leaves such a directory out: it is a copy under way, and
// might be the one of that very archive.
const tempPrefix = ".sandshell-copy-"

// ExpandHome replaces a leading ~, alone or before a slash, by the directory home.
func ExpandHome(path, home string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return home + path[1:]
	}
	return path
}

// split returns the directory and the last element of a path, slashes at its end left out. It does not clean the path, which would make
// another one of "link/..". dir is "." if there is none, name "" if path is a root of the file system.
func split(path string) (dir, name string) {
	volume := len(filepath.VolumeName(path))
	for len(path) > volume+1 && os.IsPathSeparator(path[len(path)-1]) {
		path = path[:len(path)-1]
	}
	if dir, name = filepath.Split(path); dir == "" {
		dir = "."
	}
	return dir, name
}

// fault makes err an error about path: os.Root's name paths as it sees them.
func fault(path string, err error) error {
	var inPath *fs.PathError
	var inLink *os.LinkError
	var inCall *os.SyscallError
	switch {
	case errors.As(err, &inPath):
		err = inPath.Err
	case errors.As(err, &inLink):
		err = inLink.Err
	case errors.As(err, &inCall):
		err = inCall.Err
	}
	return &fs.PathError{Op: "copy", Path: path, Err: err}
}
