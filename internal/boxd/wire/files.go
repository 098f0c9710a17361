package wire

import "math"

// A FileQuestion asks the owner's file server to do one call of sandbox.Files as a whole. It goes
// as a message of package sftpmux, and so does the FileAnswer.
type FileQuestion struct {
	ID   uint32 // the answer's
	Op   string
	Path string // absolute

	Limit uint64 // of ReadOp

	// Of WriteOp; see hostapi.Write.
	Perm    uint32 // an fs.FileMode
	Parents bool
	Temp    string // of ReplaceOp, the absolute path of the file that replaces Path
	Data    []byte `ssh:"rest"`
}

// The calls.
const (
	ReadOp    = "read"
	WriteOp   = "write"
	ListOp    = "list"
	ReplaceOp = "replace" // see hostapi.Replacer
	SymlinkOp = "symlink" // makes the link Path, which holds Data

	AttributesOp    = "attributes"     // the answer has Attributes
	SetAttributesOp = "set-attributes" // the question has Attributes
	AttributesOfOp  = "attributes-of"  // Data has the paths, with a NUL behind each
)

// FileDataMax is the greatest length of FileQuestion.Data and FileAnswer.Data.
const FileDataMax = 1 << 20

// A FileAnswer is the answer to a FileQuestion. Before anything else, the file server sends one
// without an ID, which says that it answers questions. The file server of an earlier boxd does not.
type FileAnswer struct {
	ID       uint32
	Failed   string // a Failure, JSON; "" if all went well
	Long     bool   // the answer would be longer than FileDataMax
	TooLarge bool   // the file has more than FileQuestion.Limit bytes
	// Size is that of the file; the greatest value if it has none. Of AttributesOfOp it is how many
	// files the answer is about.
	Size uint64
	// Data is the file's, or one DirEntry, Attribute or FileAttributes after the other.
	Data []byte `ssh:"rest"`
}

// NoSize is FileAnswer.Size of a file that has no size.
const NoSize = math.MaxUint64

// A DirEntry describes a file of a directory.
type DirEntry struct {
	Name     string
	Size     uint64
	Mode     uint32 // as in stat(2)
	UID, GID uint32
	Modified uint32 // in seconds since 1970
	Rest     []byte `ssh:"rest"` // the entries that follow
}

// UnpackSmallChannel is an UnpackChannel for an archive of at most SmallArchive bytes. The extra
// data is a Small, and nothing follows. An earlier boxd does not know it.
const UnpackSmallChannel = "unpack-small@sandshell"

// SmallArchive is the greatest length of Small.Archive.
const SmallArchive = 64 << 10

// A Small is a small archive, and where to unpack it.
type Small struct {
	Path    string
	Archive []byte `ssh:"rest"`
}
