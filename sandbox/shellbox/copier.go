package shellbox

import (
	"context"
	"io"
)

// A Copier is a Host that does its end of CopyTo and CopyFrom itself. On any other Host the engine
// uses sh and tar. The methods may be called concurrently.
//
// A copy is sent as a tar archive with one root. The root's entry is the first: it tells the name
// of what is copied, and whether that is a directory. All other entries are below the root. The
// archive ends with tar's trailer, two blocks of zeros. The trailer is not written when the packing
// fails, so an archive without it has been cut short.
//
// A path is absolute, or it is ~ or begins with ~/, where ~ is the home directory of the host's
// user.
//
// An error of the host's files is a *fs.PathError that wraps a syscall.Errno. If several things go
// wrong, return the first error: it caused the others. When ctx ends, reads and writes under way
// must return. The error then wraps ctx.Err() and context.Cause(ctx).
type Copier interface {
	// Unpack calls pack at most once, with a writer for an archive, and unpacks that archive. If
	// there is a directory at path, the copy is made in it, with the archive's name. Otherwise the
	// copy is made at path, and the parent of path must exist.
	//
	// A file replaces a file. A directory is added to a directory of the same name, file by file. A
	// file does not replace a directory (EISDIR), nor a directory a file (ENOTDIR). Anything that
	// is neither a file, a link nor a directory is not replaced: that is fs.ErrInvalid. If path
	// ends in a slash, a file cannot be copied there: ENOTDIR.
	//
	// The copy appears when the whole archive has been unpacked, except for files that are added to
	// a directory. After an error nothing of it is left, not even in temporary places.
	//
	// Permissions and times are those of the archive, whatever the umask is. All files belong to
	// the host's user.
	//
	// The writer need not be closed: the archive ends when pack returns. If pack returns an error,
	// the archive is cut short, and Unpack must make nothing of it. If unpacking fails, writes must
	// fail, so that pack returns. Unpack returns after pack.
	Unpack(ctx context.Context, path string, pack func(io.Writer) error) error

	// Pack packs the file at path: a link as a link, and a directory with its whole contents, but
	// without sockets and devices. If path ends in a slash, Pack follows a link, and a file is
	// ENOTDIR. Files below path that cannot be read are left out. If there was no other error, Pack
	// then returns them in a *sandbox.CopyError.
	//
	// Pack calls unpack at most once, with a reader of the archive. When everything has been
	// packed, the reader returns io.EOF after the trailer. Otherwise it returns any error, or
	// io.EOF without the trailer. unpack reads to that point. If unpack returns an error earlier,
	// Pack need not pack the rest. Pack returns after unpack. It returns nil or a
	// *sandbox.CopyError only if unpack has returned nil.
	Pack(ctx context.Context, path string, unpack func(io.Reader) error) error
}
