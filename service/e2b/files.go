package e2b

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
)

// fileError returns the error of a call about a file. what names it: "file", "directory".
func fileError(what, name string, err error) error {
	var code e2b.Code
	switch {
	case isGone(err):
		return errBoxGone
	case errors.As(err, new(*e2b.Error)):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return e2b.Errorf(e2b.NotFound, "%s %q not found", what, name)
	case errors.Is(err, fs.ErrExist):
		code = e2b.AlreadyExists
	case errors.Is(err, fs.ErrPermission):
		code = e2b.PermissionDenied
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR),
		errors.Is(err, fs.ErrInvalid):
		code = e2b.InvalidArgument
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code = e2b.ResourceExhausted
	default:
		return fmt.Errorf("%s %q: %w", what, name, err)
	}
	return e2b.Errorf(code, "%s %q: %v", what, name, err)
}

// entry describes a file or directory. Of a symbolic link it has the link's own data, and the type
// and the metadata of what it leads to.
func (c *call) entry(n *names, name string, info fs.FileInfo) *e2b.Entry {
	e := c.bareEntry(n, name, info)
	e.Metadata = readMetadata(n.ctx, c.box.Files(), name)
	return e
}

// bareEntry is entry without the metadata.
func (c *call) bareEntry(n *names, name string, info fs.FileInfo) *e2b.Entry {
	at := info.ModTime().UTC()
	mode := info.Mode()
	e := &e2b.Entry{Name: path.Base(name), Path: name, Size: e2b.Int64(info.Size()),
		Type: typeOf(mode), Mode: uint32(mode.Perm()), Permissions: mode.String(),
		ModifiedTime: &at}
	if owner, ok := info.Sys().(*sandbox.FileStat); ok && owner != nil {
		e.Owner, e.Group = n.of("/etc/passwd", owner.UID), n.of("/etc/group", owner.GID)
	}
	if mode.Type() == fs.ModeSymlink {
		e.IsSymlink = true
		if to, err := c.box.Files().ReadLink(n.ctx, name); err == nil {
			if !path.IsAbs(to) {
				to = path.Join(path.Dir(name), to)
			}
			e.SymlinkTarget = to
		}
		if to, err := c.box.Files().Stat(n.ctx, name); err == nil {
			e.Type = typeOf(to.Mode())
		}
	}
	return e
}

// typeOf returns the type of a file. FIFOs, sockets and devices have none in E2B's API.
func typeOf(mode fs.FileMode) e2b.FileType {
	switch mode.Type() {
	case fs.ModeDir:
		return e2b.TypeDirectory
	case 0:
		return e2b.TypeFile
	}
	return 0
}

func (c *call) names() *names { return &names{ctx: c.r.Context(), box: c.box} }

// look describes one file or directory.
func (c *call) look(name string) (*e2b.Entry, error) {
	info, err := c.box.Files().Lstat(c.r.Context(), name)
	if err != nil {
		return nil, fileError("file", name, err)
	}
	return c.entry(c.names(), name, info), nil
}

func (c *call) stat(req *e2b.PathRequest) (any, error) {
	e, err := c.look(c.account.path(req.Path))
	return &e2b.EntryResponse{Entry: e}, err
}

// maxEntries bounds the memory of a list, in bytes.
const maxEntries = 64 << 20

func (c *call) listDir(req *e2b.ListDirRequest) (any, error) {
	name := c.account.path(req.Path)
	info, err := c.box.Files().Stat(c.r.Context(), name)
	if err != nil {
		return nil, fileError("directory", name, err)
	}
	if !info.IsDir() {
		return nil, e2b.Errorf(e2b.InvalidArgument, "%q is not a directory", name)
	}
	l := &lister{call: c, names: c.names(),
		size: bounded.List{What: "the list of the directory", Max: maxEntries}}
	if err = l.list(name, max(1, int(req.Depth))); err == nil {
		err = l.metadata()
	}
	if err != nil {
		if errors.As(err, new(*bounded.TooLargeError)) {
			return nil, e2b.Errorf(e2b.ResourceExhausted, "%v: list with a smaller depth", err)
		}
		return nil, fileError("directory", name, err)
	}
	return &e2b.ListDirResponse{Entries: l.entries}, nil
}

// A lister lists a directory and those below it.
type lister struct {
	*call
	names   *names
	entries []*e2b.Entry
	size    bounded.List
}

func (l *lister) list(dir string, depth int) error {
	list, err := l.box.Files().ReadDir(l.names.ctx, dir)
	if err != nil {
		return err
	}
	for _, item := range list {
		info, err := item.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just been removed
		}
		if err != nil {
			return err
		}
		name := path.Join(dir, item.Name())
		if err := l.size.Add(2*len(name) + 300); err != nil {
			return err
		}
		l.entries = append(l.entries, l.bareEntry(l.names, name, info))
		if !item.IsDir() || depth < 2 {
			continue
		}
		err = l.list(name, depth-1)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func (c *call) makeDir(req *e2b.PathRequest) (any, error) {
	name := c.account.path(req.Path)
	switch info, err := c.box.Files().Stat(c.r.Context(), name); {
	case err == nil && info.IsDir():
		return nil, e2b.Errorf(e2b.AlreadyExists, "directory %q already exists", name)
	case err == nil:
		return nil, e2b.Errorf(e2b.InvalidArgument, "%q exists, and is not a directory", name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fileError("directory", name, err)
	}
	if err := c.mkdirAll(name); err != nil {
		return nil, err
	}
	e, err := c.look(name)
	return &e2b.EntryResponse{Entry: e}, err
}

// mkdirAll makes a directory and those above it, and gives those that are new to the client's user.
func (c *call) mkdirAll(dir string) error {
	var made []string
	for name := dir; name != "/"; name = path.Dir(name) {
		if _, err := c.box.Files().Stat(c.r.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, name)
	}
	if len(made) == 0 {
		return nil
	}
	if err := c.box.Files().MkdirAll(c.r.Context(), dir, 0o755); err != nil {
		return fileError("directory", dir, err)
	}
	return c.giveAway(made...)
}

// giveAway gives new files to the client's user, if that is not the box's own.
func (c *call) giveAway(files ...string) error {
	if c.account.switchTo == "" {
		return nil
	}
	return chown(c.r.Context(), c.box, c.account, files)
}

// chown changes the owner of files, with the rights of the box's own user.
func chown(ctx context.Context, box sandbox.Sandbox, to *account, files []string) error {
	ctx, said, stop := bounded.Capture(ctx, "what chown says", 8<<10)
	defer stop()
	code, err := box.Run(ctx, &sandbox.Cmd{Stderr: said, Args: append([]string{"chown", "-h", "--",
		fmt.Sprintf("%d:%d", to.uid, to.gid)}, files...)})
	if err == nil && code != 0 {
		err = e2b.Errorf(e2b.PermissionDenied, "give %q to %q: %s", files, to.name, said)
	}
	return err
}

func (c *call) move(req *e2b.MoveRequest) (any, error) {
	from, to := c.account.path(req.Source), c.account.path(req.Destination)
	if _, err := c.box.Files().Lstat(c.r.Context(), from); err != nil {
		return nil, fileError("file", from, err)
	}
	if err := c.mkdirAll(path.Dir(to)); err != nil {
		return nil, err
	}
	if err := c.box.Files().Rename(c.r.Context(), from, to); err != nil {
		return nil, fileError("file", to, err)
	}
	e, err := c.look(to)
	return &e2b.EntryResponse{Entry: e}, err
}

func (c *call) remove(req *e2b.PathRequest) (any, error) {
	name := c.account.path(req.Path)
	if err := c.box.Files().RemoveAll(c.r.Context(), name); err != nil {
		return nil, fileError("file", name, err)
	}
	return &e2b.Empty{}, nil
}
