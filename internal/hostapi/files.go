package hostapi

import (
	"errors"
	"io/fs"
)

// A Replacer is a shellbox.FileClient that keeps more of a file that WriteFile replaces than its
// owner and mode.
type Replacer interface {
	// Replace copies the ACL and the extended attributes of the file to onto the file from, as far
	// as the file system and the user's rights allow. Then it renames from to to.
	Replace(from, to string) error
}

// A WholeFiler is a shellbox.FileClient that reads or writes a small file with one question.
// Without it, a call takes several, one after the other.
type WholeFiler interface {
	// ReadWhole is ReadFile of sandbox.Files. If the file is too long for one answer, the error is
	// ErrLong.
	ReadWhole(name string, limit int64) ([]byte, error)

	// WriteWhole is WriteFile of sandbox.Files. If w is too long for one question, WriteWhole does
	// nothing, and the error is ErrLong. WriteWhole leaves no temporary file, unless the FileClient
	// has ended.
	WriteWhole(name string, w Write) error
}

// ErrLong says that a file is too long for a WholeFiler.
var ErrLong = errors.New("it is too long for one message")

// A Write is what WriteFile of sandbox.Files does.
type Write struct {
	Data    []byte
	Perm    fs.FileMode
	Parents bool
	// Temp is the name, without directories, of the temporary file beside the one that is written,
	// as tempname.New returns it.
	Temp string
}
