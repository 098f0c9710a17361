//go:build linux

package history

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// A back makes a directory that is as now has it into what want has.
type back struct {
	ctx       context.Context
	store     *store
	root      int
	now, want *entry
	nowLinks  leaders
	wantLinks leaders
	differ    map[*entry]bool // the directories of want to which something is to be done
	replaced  map[string]bool // first names that get another file
	inImage   bool            // now is of an image, to which other file systems do not belong
	left      skips
}

func newBack(ctx context.Context, o *operation, now, want *entry) *back {
	return &back{ctx: ctx, store: o.store, root: o.root, now: now, want: want,
		nowLinks: leadersOf(now), wantLinks: leadersOf(want), differ: map[*entry]bool{},
		replaced: map[string]bool{}}
}

func (b *back) run() error {
	if !b.compare("", b.now, b.want) {
		return nil
	}
	return b.directory(b.root, "", b.now, b.want)
}

// compare finds the directories that differ.
func (b *back) compare(path string, now, want *entry) bool {
	differs := !want.asIs && !now.same(want)
	pairs(now, want, func(a, w *entry) error {
		switch {
		case a == nil || w == nil:
			differs = true
		case a.kind == directory && w.kind == directory:
			if b.compare(join(path, w.name), a, w) {
				differs = true
			}
		case !b.equal(join(path, w.name), a, w):
			differs = true
		}
		return nil
	})
	if differs {
		b.differ[want] = true
	}
	return differs
}

// equal reports whether a file is as want has it. Of several names of a file, the first is asked
// for first.
func (b *back) equal(path string, now, want *entry) bool {
	first := b.wantLinks.of(path)
	if now.same(want) && b.nowLinks.of(path) == first && !b.replaced[first] {
		return true
	}
	b.replaced[path] = true
	return false
}

// errMeanwhile says that a file is not as it was saved, so it is neither replaced nor removed.
var errMeanwhile = errors.New("another program has changed it meanwhile")

// tolerate notes that something could not be done, if the reason is that one file. It returns any
// other error.
func (b *back) tolerate(path string, err error) error {
	if err == nil {
		return nil
	}
	if path == "" {
		path = "."
	}
	var errno syscall.Errno
	if errors.Is(err, errMeanwhile) || errors.Is(err, errDamaged) {
		b.left.add(path, err.Error())
		return nil
	}
	if errors.As(err, &errno) {
		why := errno.Error()
		switch errno {
		case unix.EACCES, unix.EPERM, unix.EROFS, unix.EOPNOTSUPP, unix.ETXTBSY:
		case unix.EBUSY:
			why += ": it is a mount of its own"
		case unix.ENOTEMPTY, unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EISDIR:
			why = errMeanwhile.Error()
		default:
			return fmt.Errorf("%q: %w", path, err)
		}
		b.left.add(path, why)
		return nil
	}
	return err
}

// directory makes the directory fd into what want has, and its attributes too.
func (b *back) directory(fd int, path string, now, want *entry) (err error) {
	if now.mode&0o300 != 0o300 {
		if err := b.tolerate(path, unix.Fchmod(fd, now.mode|0o700)); err != nil {
			return err
		}
	}
	err = pairs(now, want, func(a, w *entry) error {
		if err := ctxerr.Of(b.ctx); err != nil {
			return err
		}
		return b.pair(fd, path, a, w)
	})
	if want.asIs && now.ino != 0 {
		want = now // as the image has it
	}
	// Also after an error: a directory that the user could not write has got the permission above.
	return errors.Join(err, b.tolerate(path, b.finish(fd, want)))
}

// pair makes a file that is as a has it into what w has. One of them may be nil.
func (b *back) pair(fd int, path string, a, w *entry) error {
	switch {
	case b.inImage && (isMount(a) || w != nil && w.kind == skipped): // Report has it
		return nil
	case w == nil && a.kind == skipped:
		b.left.add(join(path, a.name), "it cannot be saved, so it stays: "+a.rest().why)
		return nil
	case w == nil:
		_, err := b.remove(fd, join(path, a.name), a)
		return err
	}
	path = join(path, w.name)
	switch {
	case w.kind == skipped:
		if a == nil || a.kind != skipped {
			b.left.add(path, "it could not be saved: "+w.rest().why)
		}
		return nil
	case a != nil && a.kind == skipped:
		b.left.add(path, "what is there cannot be saved, so it stays: "+a.rest().why)
		return nil
	case a != nil && a.kind == directory && w.kind == directory:
		if !b.differ[w] {
			return nil
		}
		sub, err := openForced(fd, a)
		if err != nil {
			return b.tolerate(path, err)
		}
		defer unix.Close(sub)
		return b.directory(sub, path, a, w)
	case a != nil && a.kind != directory && w.kind != directory && !b.replaced[path]:
		return nil
	case w.kind == directory:
		return b.makeDirectory(fd, path, a, w)
	}
	return b.replace(fd, path, a, w)
}

// isMount reports whether another file system is there.
func isMount(e *entry) bool {
	return e != nil && e.kind == skipped && e.rest().why == otherDevice
}

// openForced opens a directory, with the permission to do so if need be.
func openForced(dir int, e *entry) (int, error) {
	fd, err := openDir(dir, e.name)
	if err == unix.EACCES {
		p, perr := openat(dir, e.name, unix.O_PATH|unix.O_DIRECTORY)
		if perr != nil {
			return -1, err
		}
		defer unix.Close(p)
		var st unix.Stat_t
		if fstat(p, &st) != nil || st.Ino != e.ino || unix.Chmod(fdPath(p), e.mode|0o700) != nil {
			return -1, err
		}
		fd, err = openDir(dir, e.name)
	}
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = fstat(fd, &st); err == nil && (st.Ino != e.ino || uint64(st.Dev) != e.dev) {
		err = errMeanwhile
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// still returns an error unless a file is as it was saved.
func still(dir int, e *entry) error {
	var st unix.Stat_t
	if err := fstatat(dir, e.name, &st); err != nil {
		return err
	}
	if !e.isStill(&st) || e.nlink < 2 && st.Ctim.Nano() != e.ctime {
		return errMeanwhile
	}
	return nil
}

// remove removes a file, or a directory with all that is in it. It reports whether it is gone.
func (b *back) remove(dir int, path string, e *entry) (gone bool, err error) {
	if err := ctxerr.Of(b.ctx); err != nil {
		return false, err
	}
	if e.kind != directory {
		err := still(dir, e)
		if err == nil {
			err = again(func() error { return unix.Unlinkat(dir, e.name, 0) })
		}
		return err == nil, b.tolerate(path, err)
	}
	fd, err := openForced(dir, e)
	if err != nil {
		return false, b.tolerate(path, err)
	}
	defer unix.Close(fd)
	if e.mode&0o300 != 0o300 {
		if err := unix.Fchmod(fd, e.mode|0o700); err != nil {
			return false, b.tolerate(path, err)
		}
	}
	all := true
	for _, c := range e.children {
		p := join(path, c.name)
		if c.kind == skipped {
			b.left.add(p, "it cannot be saved, so it stays: "+c.rest().why)
			all = false
			continue
		}
		gone, err := b.remove(fd, p, c)
		if err != nil {
			unix.Fchmod(fd, e.mode)
			return false, err
		}
		all = all && gone
	}
	if all {
		err = again(func() error { return unix.Unlinkat(dir, e.name, unix.AT_REMOVEDIR) })
	}
	if !all || err != nil {
		unix.Fchmod(fd, e.mode)
	}
	return all && err == nil, b.tolerate(path, err)
}

// makeDirectory makes a directory where there is nothing, or a, which is not a directory.
func (b *back) makeDirectory(dir int, path string, a, w *entry) error {
	if a != nil {
		if gone, err := b.remove(dir, path, a); err != nil || !gone {
			return err
		}
	}
	err := again(func() error { return unix.Mkdirat(dir, w.name, 0o700) })
	var fd int
	if err == nil {
		fd, err = openDir(dir, w.name)
	}
	if err != nil {
		return b.tolerate(path, err)
	}
	defer unix.Close(fd)
	return b.directory(fd, path, &entry{kind: directory, mode: 0o700}, w)
}
