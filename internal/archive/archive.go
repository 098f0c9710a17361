// Package archive packs a file or directory into a tar archive, and unpacks such an archive: the
// two ends of a copy into a sandbox or out of it. The same code runs on both sides.
//
// # What is in an archive
//
// One root, which is a file, a link or a directory. Its entry is the first, and has the name of
// what was packed: that is the copy's name unless another is given. All other entries are below it.
// Links are kept as links, several names of one file as hard links. Permissions and times are kept,
// owners are not: a copy belongs to the user who makes it. Sockets and devices are left out, for
// there is nothing in them to copy. The format is GNU's, the only one in which busybox's tar reads
// long names. Extended headers of POSIX's tell the fractions of seconds and, from [Pack] to
// [Unpack], where a file has holes.
//
// # A copy is whole or is not
//
// [Pack] ends an archive with tar's trailer only if all went well, and [Unpack] fails without one:
// tar itself takes an archive that breaks off between two files for a whole one. What Pack cannot
// read below the root is no failure: it is left out and told. Unpack makes the copy in a temporary
// directory beside its destination, and moves it there in the end. A directory that is copied onto
// a directory is added to it, file by file.
//
// # Errors
//
// They are *[fs.PathError], and Err is a syscall.Errno where the system gave one; or a
// *sandbox.CopyError if the archive is whole.
package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandshell/sandshell/internal/tempname"
)

// tempPrefix begins the names of the directories in which copies are made. Pack leaves such
// directories out: in one of them the archive that it is writing may be being unpacked.
const tempPrefix = tempname.Prefix + "copy-"

// ExpandHome replaces a leading ~, alone or before a slash, by the directory home.
func ExpandHome(path, home string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return home + path[1:]
	}
	return path
}

// split returns the directory and the last element of a path, without slashes at the path's end. It
// does not clean the path: cleaned, "link/.." would name another directory. dir is "." if the path
// has none; name is "" if the path is a root of the file system.
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

// endsInSlash reports whether a path can only be a directory's.
func endsInSlash(path string) bool { return path != "" && os.IsPathSeparator(path[len(path)-1]) }

// fault makes err an error about path, in place of the path in it: errors of os.Root have one that
// is relative to the root.
func fault(path string, err error) *fs.PathError {
	return &fs.PathError{Op: "copy", Path: path, Err: bare(err)}
}

// bare takes an error out of what names the operation and the file.
func bare(err error) error {
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
