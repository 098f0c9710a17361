package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/sandshell/sandshell/internal/tempname"
)

// Commit moves what has been unpacked to its destination.
func (u *Unpacker) Commit() error {
	if !u.whole {
		return fault(u.pathOf(u.top), io.ErrUnexpectedEOF)
	}
	from := path.Join(u.temp, filepath.ToSlash(u.top))
	if u.merge {
		return u.add(from, ".")
	}
	src, err := u.into.Lstat(from)
	if err == nil {
		err = u.place(src, from, u.name)
	}
	if err != nil {
		return fault(u.pathOf(u.top), err)
	}
	return nil
}

// Close removes what has not been committed.
func (u *Unpacker) Close() error {
	var err error
	if u.within != nil {
		u.within.Close()
	}
	if u.root != nil {
		u.root.Close()
	}
	if u.temp != "" {
		err = removeAll(u.into, u.temp)
	}
	if u.into != u.parent {
		u.into.Close()
	}
	u.parent.Close()
	return err
}

// add moves the contents of the directory from into the directory to. It merges directories that
// exist in both in the same way.
func (u *Unpacker) add(from, to string) error {
	if err := chmod(u.into, from, 0o700); err != nil { // a read-only one could not be emptied
		return u.faultIn(to, err)
	}
	names, err := list(u.into, from)
	if err != nil {
		return u.faultIn(to, err)
	}
	for _, name := range names {
		from, to := path.Join(from, name), path.Join(to, name)
		src, err := u.into.Lstat(from)
		if err != nil {
			return u.faultIn(to, err)
		}
		if there, err := u.into.Stat(to); err == nil && there.IsDir() && src.IsDir() {
			if err := u.add(from, to); err != nil {
				return err
			}
			continue
		}
		if err := u.place(src, from, to); err != nil {
			return u.faultIn(to, err)
		}
	}
	return nil
}

func (u *Unpacker) faultIn(to string, err error) error {
	return fault(filepath.Join(u.into.Name(), filepath.FromSlash(to)), err)
}

// place moves src from the path from to the path to, where there is no directory.
func (u *Unpacker) place(src fs.FileInfo, from, to string) error {
	mode := src.Mode()
	// a move changes the ".." of a directory, so the directory must be writable
	locked := mode.IsDir() && mode&0o200 == 0
	if locked {
		if err := chmod(u.into, from, mode|0o200); err != nil {
			return err
		}
	}
	err := u.rename(src, from, to)
	// the destination is another file system, mounted within the directory
	if errors.Is(err, syscall.EXDEV) {
		return transfer(u.into, src, from, to)
	}
	if err == nil && locked {
		err = chmod(u.into, to, mode)
	}
	return err
}

// rename moves a file to its place. If the file replaces another, it has a name of
// tempname.Replacing just before, because inotify does not tell that.
func (u *Unpacker) rename(src fs.FileInfo, from, to string) error {
	there, err := u.into.Lstat(to)
	if err != nil || there.IsDir() || src.IsDir() {
		return u.into.Rename(from, to)
	}
	if err := replaceable(there); err != nil {
		return err
	}
	return replace(u.into, to, func(temp string) error { return u.into.Rename(from, temp) })
}

// replaceable returns why a file must not replace there; nil if it may.
func replaceable(there fs.FileInfo) error {
	if kind := there.Mode().Type(); kind&^(fs.ModeSymlink|fs.ModeDir) != 0 {
		return fmt.Errorf("%w: no regular file (%v)", fs.ErrInvalid, kind)
	}
	return nil
}

// transfer is place for two file systems.
func transfer(root *os.Root, src fs.FileInfo, from, to string) error {
	switch {
	case src.IsDir():
		return transferDir(root, src, from, to)
	case src.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(from)
		if err != nil {
			return err
		}
		return replace(root, to, func(temp string) error { return root.Symlink(target, temp) })
	case src.Mode().IsRegular():
		in, err := root.Open(from)
		if err != nil {
			return err
		}
		defer in.Close()
		return replace(root, to, func(temp string) error {
			return writeFile(root, temp, src.Mode(), src.ModTime(), func(out *os.File) error {
				return refill(out, in, src.Size())
			})
		})
	}
	return syscall.EXDEV
}

func transferDir(root *os.Root, src fs.FileInfo, from, to string) error {
	if err := chmod(root, from, 0o700); err != nil {
		return err
	}
	names, err := list(root, from)
	if err != nil {
		return err
	}
	if err := root.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		from, to := path.Join(from, name), path.Join(to, name)
		info, err := root.Lstat(from)
		if err != nil {
			return err
		}
		if err := transfer(root, info, from, to); err != nil {
			return err
		}
	}
	return finishDir(root, to, dirMode{src.Mode(), src.ModTime()})
}

// replace calls write to make a file beside to, and moves that file to to.
func replace(root *os.Root, to string, write func(temp string) error) error {
	temp := path.Join(path.Dir(to), tempname.Replacing())
	err := write(temp)
	if err == nil {
		err = root.Rename(temp, to)
	}
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("%w: it is a mount of its own", err)
	}
	if err != nil {
		root.Remove(temp)
	}
	return err
}

// list returns the names in a directory. (ReadDir of root.FS() refuses names that are not UTF-8.)
func list(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// removeAll removes dir, read-only directories in it included.
func removeAll(root *os.Root, dir string) error {
	err := root.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		unlock(root, dir)
		err = root.RemoveAll(dir)
	}
	return err
}

func unlock(root *os.Root, dir string) {
	chmod(root, dir, 0o700)
	names, _ := list(root, dir)
	for _, name := range names {
		p := path.Join(dir, name)
		if info, err := root.Lstat(p); err == nil && info.IsDir() {
			unlock(root, p)
		}
	}
}
