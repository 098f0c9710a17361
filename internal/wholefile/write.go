package wholefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/tempname"
)

// specialBits are the bits of a mode beside the permissions.
const specialBits = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// Write writes a file as WriteFile of sandbox.Files does. If left is true, it could not remove its
// temporary file, and RemoveTemp may.
func Write(ctx context.Context, c Client, name string, w hostapi.Write) (left bool, err error) {
	target, old, err := followLinks(c, name)
	if err != nil {
		return false, err
	}
	dir, base := path.Split(target)
	switch {
	case old == nil && base == "", old != nil && old.IsDir():
		return false, syscall.EISDIR
	case old != nil && !old.Mode().IsRegular():
		return false, notRegular(old)
	}
	temp, move := dir+w.Temp, c.Rename
	if old != nil {
		temp = dir + tempname.ToReplace(w.Temp)
		if r, ok := c.(hostapi.Replacer); ok {
			move = r.Replace
		}
	}
	err = fill(ctx, c, w, temp, dir, old)
	if err == nil && ctx.Err() != nil {
		err = ctxerr.Of(ctx)
	}
	if err == nil {
		err = move(temp, target)
	}
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("%w: it is a mount of its own", Reason(err))
	}
	if err == nil {
		return false, nil
	}
	if c.Err() != nil {
		return true, err
	}
	rerr := c.Remove(temp)
	return rerr != nil && !errors.Is(rerr, fs.ErrNotExist), err
}

// RemoveTemp removes the temporary file that a Write of name may have left.
func RemoveTemp(c Client, name string, w hostapi.Write) error {
	target, _, err := followLinks(c, name)
	if err != nil {
		return err
	}
	dir, _ := path.Split(target)
	return errors.Join(c.Remove(dir+w.Temp), c.Remove(dir+tempname.ToReplace(w.Temp)))
}

// fill makes the temporary file that is to replace old. old is nil if there is no such file.
func fill(ctx context.Context, c Client, w hostapi.Write, temp, dir string,
	old fs.FileInfo) error {
	file, err := c.Create(temp)
	if w.Parents && errors.Is(err, fs.ErrNotExist) {
		if err := MkdirAll(ctx, c, dir, 0o755); err != nil {
			return err
		}
		file, err = c.Create(temp)
	}
	if err != nil {
		return err
	}
	mode := w.Perm
	if old != nil {
		mode = old.Mode()
	}
	if mode&specialBits != 0 { // a write clears them
		if err := writeTo(ctx, file, w.Data); err != nil {
			return err
		}
		return setRights(c, temp, mode, old)
	}
	rights := make(chan error, 1)
	go func() { rights <- setRights(c, temp, mode, old) }()
	err = writeTo(ctx, file, w.Data)
	if rerr := <-rights; err == nil {
		err = rerr
	}
	return err
}

// writeTo writes all data, and closes the file.
func writeTo(ctx context.Context, file io.WriteCloser, rest []byte) (err error) {
	for len(rest) > 0 && err == nil {
		piece := rest[:min(len(rest), ChunkSize)]
		rest = rest[len(piece):]
		if _, err = file.Write(piece); err == nil && ctx.Err() != nil {
			err = ctxerr.Of(ctx)
		}
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}

// setRights sets the mode of a file, and the owner of old if that is not nil.
func setRights(c Client, name string, mode fs.FileMode, old fs.FileInfo) error {
	if old != nil && c.Chown(name, old) != nil {
		mode &^= specialBits // they would give another user's rights
	}
	return c.Chmod(name, mode&(fs.ModePerm|specialBits))
}

// followLinks follows symbolic links from name. It returns the path at their end and the file
// there, nil if there is none. It does not clean names: only the file system knows what ".." means
// behind a link.
func followLinks(c Client, name string) (string, fs.FileInfo, error) {
	for range 40 { // as Linux does
		info, err := c.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, nil, nil
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			return name, info, nil
		}
		link, err := c.ReadLink(name)
		if err != nil {
			return "", nil, err
		}
		if !path.IsAbs(link) {
			dir, _ := path.Split(name)
			link = dir + link
		}
		name = link
	}
	return "", nil, syscall.ELOOP
}

// notRegular is the error of an operation that needs a regular file.
func notRegular(info fs.FileInfo) error {
	return fmt.Errorf("%w: not a regular file (%v)", fs.ErrInvalid, info.Mode().Type())
}
