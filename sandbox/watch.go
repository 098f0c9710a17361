package sandbox

import "fmt"

// A FileEvent is a change that Files.Watch tells of.
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
	// FileCreated: an entry came. It was made, linked, renamed or moved here, perhaps in the place
	// of another.
	FileCreated FileOp = iota + 1
	// FileWritten: a file's content changed, and more may come. One event may stand for many
	// changes.
	FileWritten
	// FileRemoved: an entry went. It was removed, renamed or moved away.
	FileRemoved
	// FileAttributes: permissions, owner, times or extended attributes changed.
	FileAttributes
	// FileOverflow: there were more changes than are kept, and some are not told. Look at the
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
