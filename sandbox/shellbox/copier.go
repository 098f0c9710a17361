package shellbox

import (
	"context"
	"io"
)

// A Copier is a Host that does its end of CopyTo and CopyFrom itself. On any other Host the engine
// uses sh and tar.
//
// A copy is sent as a tar archive with one root. The root's entry is the first: it tells the name
// of what is copied, and whether that is a directory. All other entries are below the root. The
// archive ends with tar's trailer, two blocks of zeros. The trailer is not written when the packing
// fails, so an archive without it has been cut short.
//
// A path is absolute, or it is ~ or begins with ~/, where ~ is the home directory of the host's
// user.
//
// An error of the host's files is a *fs.PathError that wraps a syscall.Errno. When several things
// go wrong, return the first: it caused the others. When ctx ends, reads and writes under way must
// return. The error then wraps ctx.Err() and context.Cause(ctx).
type Copier interface {
	// Unpack calls pack, once at most, with a writer that takes an archive, and unpacks it. Where
	// there is a directory at path, the copy is made in it, under the archive's name; else it is
	// made as path, whose parent must exist. A file takes the place of a file; a directory is added
	// to a directory of its name, file by file; a file does not take the place of a directory
	// (EISDIR), nor the other way round (ENOTDIR). Except for what is added to a directory, the
	// copy appears when the whole archive has been unpacked; after an error nothing of it is left,
	// not even in temporary places.
	//
	// What is there and is neither a file, a link nor a directory is not replaced: that is
	// fs.ErrInvalid. If path ends in a slash, it is no file's: ENOTDIR.
	//
	// Permissions and times are as in the archive, whatever the umask is; all files belong to the
	// host's user.
	//
	// The writer need not be closed: the archive ends when pack returns. If pack returns an error,
	// the archive is cut short, and Unpack must make nothing of it. If unpacking fails, writes must
	// fail, so that pack returns. Unpack returns after pack.
	Unpack(ctx context.Context, path string, pack func(io.Writer) error) error

	// Pack packs what is at path: a link as a link, with its directory's whole contents if it is a
	// directory, without sockets and devices. If path ends in a slash, a link is followed; a file
	// is ENOTDIR. What is below path and cannot be read is left out, and told by a
	// *sandbox.CopyError when all else has gone well. Pack calls unpack, once at most, with a
	// reader of the archive. When all has been packed, the reader returns io.EOF after the trailer;
	// otherwise it returns any error, or io.EOF without the trailer. unpack returns when it has
	// read to there. If unpack returns an error earlier, Pack need not pack the rest. Pack returns
	// after unpack, with nil or a *sandbox.CopyError only if both went well.
	Pack(ctx context.Context, path string, unpack func(io.Reader) error) error
}
