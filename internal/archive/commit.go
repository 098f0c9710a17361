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
	if !u.complete {
		return copyError(u.pathOf(u.rootEntry), io.ErrUnexpectedEOF)
	}
	from := path.Join(u.temp, filepath.ToSlash(u.rootEntry))
	if u.merge {
		return u.mergeInto(from, ".")
	}
	src, err := u.destRoot.Lstat(from)
	if err == nil {
		err = u.place(src, from, u.name)
	}
	if err != nil {
		return copyError(u.pathOf(u.rootEntry), err)
	}
	return nil
}

// Close removes what has not been committed.
func (u *Unpacker) Close() error {
	var err error
	if u.fileDir != nil {
		u.fileDir.Close()
	}
	if u.root != nil {
		u.root.Close()
	}
	if u.temp != "" {
		err = removeAll(u.destRoot, u.temp)
	}
	if u.destRoot != u.parent {
		u.destRoot.Close()
	}
	u.parent.Close()
	return err
}

// mergeInto moves the contents of the directory from into the directory to. It merges directories
// that exist in both.
func (u *Unpacker) mergeInto(from, to string) error {
	if err := chmod(u.destRoot, from, 0o700); err != nil { // files cannot leave a read-only one
		return u.errorAt(to, err)
	}
	names, err := dirNames(u.destRoot, from)
	if err != nil {
		return u.errorAt(to, err)
	}
	for _, name := range names {
		from, to := path.Join(from, name), path.Join(to, name)
		src, err := u.destRoot.Lstat(from)
		if err != nil {
			return u.errorAt(to, err)
		}
		if there, err := u.destRoot.Stat(to); err == nil && there.IsDir() && src.IsDir() {
			if err := u.mergeInto(from, to); err != nil {
				return err
			}
			continue
		}
		if err := u.place(src, from, to); err != nil {
			return u.errorAt(to, err)
		}
	}
	return nil
}

func (u *Unpacker) errorAt(to string, err error) error {
	return copyError(filepath.Join(u.destRoot.Name(), filepath.FromSlash(to)), err)
}

// place moves src from the path from to the path to, where there is no directory.
func (u *Unpacker) place(src fs.FileInfo, from, to string) error {
	mode := src.Mode()
	// A move changes the ".." of a directory, so the directory must be writable.
	locked := mode.IsDir() && mode&0o200 == 0
	if locked {
		if err := chmod(u.destRoot, from, mode|0o200); err != nil {
			return err
		}
	}
	err := u.rename(src, from, to)
	// The destination may be on another file system, mounted within the directory.
	if errors.Is(err, syscall.EXDEV) {
		return copyAcross(u.destRoot, src, from, to)
	}
	if err == nil && locked {
		err = chmod(u.destRoot, to, mode)
	}
	return err
}

// rename moves a file to its place. A file that replaces another is first renamed to a name of
// tempname.Replacing: by that name, package fswatch knows that the next rename replaces a file.
func (u *Unpacker) rename(src fs.FileInfo, from, to string) error {
	there, err := u.destRoot.Lstat(to)
	if err != nil || there.IsDir() || src.IsDir() {
		return u.destRoot.Rename(from, to)
	}
	if err := checkReplaceable(there); err != nil {
		return err
	}
	return replace(u.destRoot, to, func(temp string) error { return u.destRoot.Rename(from, temp) })
}

// checkReplaceable returns an error unless a file may replace there.
func checkReplaceable(there fs.FileInfo) error {
	if kind := there.Mode().Type(); kind&^(fs.ModeSymlink|fs.ModeDir) != 0 {
		return fmt.Errorf("%w: not a regular file (%v)", fs.ErrInvalid, kind)
	}
	return nil
}

// copyAcross is place for two file systems.
func copyAcross(root *os.Root, src fs.FileInfo, from, to string) error {
	switch {
	case src.IsDir():
		return copyDirAcross(root, src, from, to)
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
				return copyData(out, in, src.Size())
			})
		})
	}
	return syscall.EXDEV
}

func copyDirAcross(root *os.Root, src fs.FileInfo, from, to string) error {
	if err := chmod(root, from, 0o700); err != nil {
		return err
	}
	names, err := dirNames(root, from)
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
		if err := copyAcross(root, info, from, to); err != nil {
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

// dirNames returns the names in a directory. (ReadDir of root.FS() refuses names that are not
// UTF-8.)
func dirNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// removeAll removes dir, even if it contains read-only directories.
func removeAll(root *os.Root, dir string) error {
	err := root.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		makeWritable(root, dir)
		err = root.RemoveAll(dir)
	}
	return err
}

func makeWritable(root *os.Root, dir string) {
	chmod(root, dir, 0o700)
	names, _ := dirNames(root, dir)
	for _, name := range names {
		p := path.Join(dir, name)
		if info, err := root.Lstat(p); err == nil && info.IsDir() {
			makeWritable(root, p)
		}
	}
}
