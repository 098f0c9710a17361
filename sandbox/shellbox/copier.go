package shellbox

import (
	"context"
	"io"
)

// A Copier is a Host that does its end of CopyTo and CopyFrom itself. For a Host that is none, the engine has the host's sh and tar do it.
//
// What is copied goes as a tar archive with one root, whose entry is the first one: it tells the name of what is copied, and whether it
// is a directory. All other entries are below it. The archive ends with tar's trailer, two blocks of zeros; without that it has been cut
// short, for it is not written when the packing fails.
//
// A path is absolute, or it is ~ or begins with ~/, where ~ is the home directory of the host's user.
//
// An error of the host's files is a *fs.PathError that wraps a syscall.Errno. When several things go wrong, the first is to be
// returned: the others come of it. When ctx ends, reads and writes under way must return, and the error is context.Cause(ctx).
type Copier interface {
	// Unpack calls pack, once at most, with a writer that takes an archive, and unpacks it. Where there is a directory at path,
	// the copy is made in it, under the archive's name; else it is made as path, whose parent must exist. A file takes the place
	// of a file; a directory is added to a directory of its name, file by file; a file does not take the place of a directory
	// (EISDIR), nor the other way round (ENOTDIR). All else that is copied appears when the archive has been unpacked as a whole;
	// after an error, nothing of it is left, in temporary places neither.
	//
	// Permissions are as in the archive, whatever the umask is; all files belong to the host's user.
	//
	// The writer need not be closed: the archive ends when pack returns. If pack returns an error, the archive is not whole, and
	// nothing is to be made of it. If unpacking fails, writing must fail, so that pack returns. Unpack returns when pack has.
	Unpack(ctx context.Context, path string, pack func(io.Writer) error) error

	// Pack packs what is at path: a link as a link, with its directory's whole contents if it is a directory, without sockets and
	// devices. It calls unpack, once at most, with the archive. The reader ends with io.EOF behind the trailer when all has been
	// packed, and with any error, io.EOF without the trailer included, when not. unpack returns when it has read that, or with
	// an error before: then Pack need not pack the rest. Pack returns when unpack has, and returns nil only if both went well.
	Pack(ctx context.Context, path string, unpack func(io.Reader) error) error
}
