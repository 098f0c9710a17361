package sandbox

import "fmt"

// A FileEvent is a change that Files.Watch tells of.
type FileEvent struct {
	Op FileOp
	// Name is the name that the entry has in its directory, without the directory. "" is the
	// directory itself.
	Name string
	// From is the name that a Created entry had in the same directory before; "" if it was not
	// renamed there.
	From string
}

// A FileOp says what has changed.
type FileOp int

const (
	// an entry came: it was made or linked, or renamed or moved to here, perhaps in the place of
	// another
	Created FileOp = iota + 1
	// a file's content changed; more may come. Many at once may be told as one
	Written
	Removed    // an entry went: it was removed, or renamed or moved away
	Attributes // permissions, owner, times or extended attributes changed
	// there were more changes than were kept, and some are not told: look at the files
	Overflow
)

func (o FileOp) String() string {
	switch o {
	case Created:
		return "created"
	case Written:
		return "written"
	case Removed:
		return "removed"
	case Attributes:
		return "attributes"
	case Overflow:
		return "overflow"
	}
	return fmt.Sprintf("FileOp(%d)", int(o))
}
