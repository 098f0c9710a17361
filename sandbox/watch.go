package sandbox

import "fmt"

// A FileEvent is a change that Files.Watch reports.
type FileEvent struct {
	Op FileOp
	// Name is the entry's name in its directory, without the directory. It is "" for the directory
	// itself.
	Name string
	// From is the name that a FileCreated entry had in the same directory before. It is "" if the
	// entry was not renamed there.
	From string
}

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
