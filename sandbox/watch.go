package sandbox

import "fmt"

// A FileEvent is a change that Files.Watch reports.
type FileEvent struct {
	Op FileOp
	// Name is the entry's name in its directory, without the directory. It is "" for the directory
	// itself. With Recursive it is the path below the watched directory, such as "a/b".
	Name string
	// From is the name that a FileCreated entry had in the same directory before, or with Recursive
	// anywhere below the watched one. It is "" if the entry was not renamed there.
	From string
}

// A WatchOption changes what Watch reports.
type WatchOption func(*WatchOptions)

// WatchOptions are the options of one Watch. Implementations of Files need them.
type WatchOptions struct {
	Recursive bool // also changes further below
}

// NewWatchOptions applies opts to the defaults.
func NewWatchOptions(opts ...WatchOption) WatchOptions {
	var o WatchOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}

// Recursive makes Watch report changes in the whole tree below a directory. Symbolic links in it
// are not followed. The tree may change while it is watched: a directory that is made or moved into
// it is watched too, and what it holds by then is reported as created, each entry once. A directory
// that is moved out of it no longer counts.
//
// Directories that the user may not read are left out, and so are those whose path is longer than
// the kernel takes (4096 bytes). Each directory takes one of the user's inotify watches
// (fs.inotify.max_user_watches). If there are too few, the error is ENOSPC; if they run out later,
// FileOverflow says that changes are missing. It also says so if more than 100,000 files come into
// the tree at once. To watch a large tree takes as long as to list it.
func Recursive() WatchOption { return func(o *WatchOptions) { o.Recursive = true } }

// A FileOp says what has changed.
type FileOp int

const (
	// FileCreated says that an entry is new: it was made, linked, renamed or moved here. It may
	// have replaced another.
	FileCreated FileOp = iota + 1
	// FileWritten says that a file's content has changed. It may change further. One event may
	// stand for many changes.
	FileWritten
	// FileRemoved says that an entry is gone: it was removed, renamed or moved away.
	FileRemoved
	// FileAttributes says that permissions, owner, times or extended attributes have changed.
	FileAttributes
	// FileOverflow says that changes were lost, because there were more than are kept. Look at the
	// files.
	FileOverflow
)

// String returns the name of the change in lower case.
func (o FileOp) String() string {
	switch o {
	case FileCreated:
		return "created"
	case FileWritten:
		return "written"
	case FileRemoved:
		return "removed"
	case FileAttributes:
		return "attributes"
	case FileOverflow:
		return "overflow"
	}
	return fmt.Sprintf("FileOp(%d)", int(o))
}
