//go:build linux

package history

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// replace makes a file, link or FIFO in place of a, which may be nil.
func (b *back) replace(dir int, path string, a, w *entry) error {
	first := b.wantLinks.of(path)
	if a != nil && first == path && a.nlink < 2 && a.sameContent(w) &&
		slices.Equal(a.rest().xattrs, w.rest().xattrs) {
		return b.tolerate(path, b.setAttributes(dir, a, w))
	}
	if w.asIs && w.kind == file {
		b.left.add(path, errOtherImage.Error())
		return nil
	}
	temp := tempPrefix + rand.Text()
	err := error(unix.ENOENT)
	if first != path && !b.left.paths[first] {
		err = b.link(dir, temp, first)
	}
	if err != nil {
		err = b.make(dir, temp, path, w)
	}
	if err == nil {
		err = b.move(dir, path, temp, a, w)
	}
	if err != nil || first != path { // a rename onto the same file leaves both
		unix.Unlinkat(dir, temp, 0)
	}
	if err == errStays {
		return nil
	}
	return b.tolerate(path, err)
}

// errOtherImage says that a file would have to be the image's, and is not.
var errOtherImage = errors.New("its content is that of the image, and this image has another one")

// errStays says that what was in the place of a file has been noted as left.
var errStays = errors.New("what is there stays")

// move renames a temporary file to its place.
func (b *back) move(dir int, path, temp string, a, w *entry) error {
	if a != nil && a.kind == directory {
		gone, err := b.remove(dir, path, a)
		if err != nil {
			return err
		}
		if !gone {
			return errStays
		}
		a = nil
	}
	if a == nil {
		err := again(func() error {
			return unix.Renameat2(dir, temp, dir, w.name, unix.RENAME_NOREPLACE)
		})
		if err != unix.EINVAL && err != unix.ENOSYS && err != unix.EPERM {
			return err
		}
		// The file system or the kernel has no such rename.
		var st unix.Stat_t
		if err := fstatat(dir, w.name, &st); err != unix.ENOENT {
			return errMeanwhile
		}
	} else if err := still(dir, a); err != nil {
		return err
	}
	return again(func() error { return unix.Renameat(dir, temp, dir, w.name) })
}

// link makes another name of a file, which this Back has not to change any more.
func (b *back) link(dir int, name, first string) error {
	parts := strings.Split(first, "/")
	at := b.root
	for _, p := range parts[:len(parts)-1] {
		fd, err := openDir(at, p)
		if at != b.root {
			unix.Close(at)
		}
		if err != nil {
			return err
		}
		at = fd
	}
	err := again(func() error { return unix.Linkat(at, parts[len(parts)-1], dir, name, 0) })
	if at != b.root {
		unix.Close(at)
	}
	return err
}

// make makes a file, link or FIFO of that name.
func (b *back) make(dir int, name, path string, w *entry) error {
	switch w.kind {
	case file:
		fd, err := openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := b.fill(fd, w); err != nil {
			return err
		}
		return b.tolerate(path, b.finish(fd, w))
	case link:
		if err := unix.Symlinkat(w.rest().target, dir, name); err != nil {
			return err
		}
	case fifo:
		if err := unix.Mkfifoat(dir, name, 0o600); err != nil {
			return err
		}
	}
	return b.tolerate(path, setNamed(dir, name, w))
}

// fill writes the content of a file, and checks it.
func (b *back) fill(fd int, w *entry) error {
	r, err := b.store.open(w)
	if err != nil {
		return err
	}
	sum := sha256.New()
	r = untilEnd{b.ctx, r}
	buf := make([]byte, min(256<<10, w.stored()))
	for _, x := range w.extents() {
		for at, end := x.offset, x.offset+x.length; at < end; {
			n, err := io.ReadFull(r, buf[:min(int64(len(buf)), end-at)])
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return errDamaged
			}
			if err != nil {
				return err
			}
			sum.Write(buf[:n])
			for done := 0; done < n; {
				m := 0
				if err := again(func() (err error) {
					m, err = unix.Pwrite(fd, buf[done:n], at)
					return err
				}); err != nil {
					return err
				}
				done, at = done+m, at+int64(m)
			}
		}
	}
	if [32]byte(sum.Sum(nil)) != w.sum {
		return errDamaged
	}
	if w.rest().extents == nil {
		return nil
	}
	return again(func() error { return unix.Ftruncate(fd, w.size) })
}

// finish gives an open file or directory the attributes of an entry. What the user may not set does
// not keep it from setting the rest.
func (b *back) finish(fd int, w *entry) error {
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return err
	}
	var errs []error
	if st.Uid != w.uid || st.Gid != w.gid {
		err := unix.Fchown(fd, int(w.uid), int(w.gid))
		if err != nil && st.Gid != w.gid && unix.Fchown(fd, -1, int(w.gid)) == nil &&
			st.Uid == w.uid {
			err = nil
		}
		errs = append(errs, err)
	}
	errs = append(errs, setXattrs(fd, w.rest().xattrs))
	if err := fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&0o7777 != w.mode {
		errs = append(errs, unix.Fchmod(fd, w.mode))
	}
	if st.Mtim.Nano() != w.mtime {
		err := unix.UtimesNanoAt(unix.AT_FDCWD, fdPath(fd), times(w), 0)
		if err == unix.EPERM && w.kind == directory {
			err = nil // another user's, such as /tmp: see Changes
		}
		errs = append(errs, err)
	}
	return firstError(errs)
}

// firstError returns the first error: errors.Join hides which system call has failed.
func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func times(w *entry) []unix.Timespec {
	return []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(w.mtime)}
}

func setXattrs(fd int, want []xattr) error {
	have := withXattrs(nil, fd)
	var errs []error
	var old []xattr
	if have != nil {
		old = have.xattrs
	}
	for _, x := range old {
		if !slices.ContainsFunc(want, func(w xattr) bool { return w.name == x.name }) {
			errs = append(errs, unix.Fremovexattr(fd, x.name))
		}
	}
	for _, x := range want {
		if !slices.Contains(old, x) {
			errs = append(errs, unix.Fsetxattr(fd, x.name, []byte(x.value), 0))
		}
	}
	return firstError(errs)
}

// setAttributes gives a file that is as a has it the owner, permissions and time of w.
func (b *back) setAttributes(dir int, a, w *entry) error {
	if err := still(dir, a); err != nil {
		return err
	}
	return setNamed(dir, w.name, w)
}

// setNamed gives a file that need not be readable the attributes of an entry, but for the extended
// ones.
func setNamed(dir int, name string, w *entry) error {
	fd, err := openat(dir, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return err
	}
	var errs []error
	if st.Uid != w.uid || st.Gid != w.gid {
		errs = append(errs, unix.Fchownat(fd, "", int(w.uid), int(w.gid), unix.AT_EMPTY_PATH))
	}
	if err := fstat(fd, &st); err != nil {
		return err
	}
	if w.kind != link && st.Mode&0o7777 != w.mode {
		errs = append(errs, unix.Chmod(fdPath(fd), w.mode))
	}
	if st.Mtim.Nano() != w.mtime {
		errs = append(errs, unix.UtimesNanoAt(dir, name, times(w), unix.AT_SYMLINK_NOFOLLOW))
	}
	return firstError(errs)
}
