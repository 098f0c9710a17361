//go:build linux

package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/tempname"
)

// tempPrefix begins the names of a Back's temporary files. The next scan of a Back removes those
// that a Back has left which was killed.
const tempPrefix = tempname.Prefix + "back-"

// A scan reads a directory, and adds the contents that the store lacks.
type scan struct {
	ctx    context.Context
	store  sink
	limits Limits
	dev    uint64 // of the root
	// force: a file or directory of the user that lacks the permission to be read gets it for as
	// long as that takes. And temporary files are removed. It is for Back, which changes the
	// directory anyway.
	force bool
	// since, if it is not 0, is when all files were as the image has them. Those that are older are
	// not read.
	since  int64
	mounts map[string]bool // in the directory

	workers chan struct{} // a token for each further goroutine
	entries atomic.Int64
	bytes   atomic.Int64
}

// A sink takes the contents that a scan reads, and says where they are.
type sink interface {
	add(data []byte, sum [32]byte) (at int64, err error)
	addStream(r io.Reader) (n int64, sum [32]byte, at int64, err error)
}

// newScan returns a scan for one run.
func newScan(ctx context.Context, s sink, l Limits, force bool) *scan {
	return &scan{ctx: ctx, store: s, limits: l, force: force,
		workers: make(chan struct{}, max(1, min(runtime.GOMAXPROCS(0), 4)-1))}
}

// run returns the tree of the directory fd. then is the tree of the last Save, or nil. If nothing
// has changed, run returns then.
func (s *scan) run(fd int, then *entry) (*entry, error) {
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return nil, err
	}
	s.dev = uint64(st.Dev)
	return s.directory(fd, "", "", then, 0)
}

// newEntry returns an entry with what stat has returned at that time.
func (s *scan) newEntry(name string, k kind, st *unix.Stat_t, at time.Time) *entry {
	e := newEntry(name, k, st, at)
	e.asIs = e.ctime < s.since
	return e
}

// errChanged says that a name no longer names what it has named.
var errChanged = errors.New("it was replaced while it was read")

// directory returns the entry of a directory, with all that is below it.
func (s *scan) directory(fd int, name, path string, then *entry, depth int) (*entry, error) {
	if err := ctxerr.Of(s.ctx); err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("%q: %w: directories are more than %d levels deep: give one that "+
			"does not hold them", path, syscall.ELOOP, maxDepth)
	}
	now := time.Now()
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return nil, err
	}
	if uint64(st.Dev) != s.dev {
		return skip(s.newEntry(name, directory, &st, now), otherDevice), nil
	}
	e := s.newEntry(name, directory, &st, now)
	known := then != nil && then.unchanged(&st) && !s.force
	var names []string
	if known {
		names = make([]string, len(then.children))
		for i, c := range then.children {
			names[i] = c.name
		}
		e.more = then.more
	} else {
		var err error
		if names, err = s.names(fd); err != nil {
			return nil, err
		}
		e.more = withXattrs(nil, fd)
	}
	if n := s.entries.Add(int64(len(names))); n > int64(s.limits.Entries) {
		return nil, fmt.Errorf("the directory has more than %d entries: give one further down, "+
			"or allow more", s.limits.Entries)
	}
	children := make([]*entry, len(names))
	var wait sync.WaitGroup
	var failed atomic.Pointer[error]
	for i, child := range names {
		old := then.child(child)
		if known {
			old = then.children[i]
		}
		c, sub, err := s.child(fd, child, join(path, child), old)
		if err == nil && sub != nil {
			descend := func() (err error) {
				defer sub.close()
				children[i], err = s.descend(sub, child, join(path, child), old, depth+1)
				return err
			}
			select {
			case s.workers <- struct{}{}:
				wait.Go(func() {
					defer func() { <-s.workers }()
					if err := descend(); err != nil {
						failed.CompareAndSwap(nil, &err)
					}
				})
			default:
				err = descend()
			}
		} else {
			children[i] = c
		}
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
		if failed.Load() != nil {
			break
		}
	}
	wait.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	e.children = slices.DeleteFunc(children, func(c *entry) bool { return c == nil })
	if then != nil && e.identical(then) && slices.Equal(e.children, then.children) {
		return then, nil
	}
	return e, nil
}

// A subdirectory is an open directory below another.
type subdirectory struct {
	fd     int
	forced bool   // it has got permissions to be read
	mode   uint32 // and had these
}

func (d *subdirectory) close() {
	if d.forced {
		unix.Fchmod(d.fd, d.mode)
	}
	unix.Close(d.fd)
}

// descend scans a directory below another. One that may not be read is skipped.
func (s *scan) descend(sub *subdirectory, name, path string, then *entry,
	depth int) (*entry, error) {
	if then != nil && then.kind != directory {
		then = nil
	}
	e, err := s.directory(sub.fd, name, path, then, depth)
	if errno := syscall.Errno(0); errors.As(err, &errno) && mayBeSkipped(errno) {
		var st unix.Stat_t
		if fstat(sub.fd, &st) == nil {
			return skip(s.newEntry(name, skipped, &st, time.Now()), errno.Error()), nil
		}
	}
	if err == nil && sub.forced {
		e.mode, e.racy = sub.mode, true
	}
	return e, err
}

// mayBeSkipped reports whether an error is of the file that is read, and not of the machine.
func mayBeSkipped(errno syscall.Errno) bool {
	return errno == unix.EACCES || errno == unix.EPERM
}

// names returns the names in a directory, in order, without temporary files.
func (s *scan) names(fd int) ([]string, error) {
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	var names []string
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
		if len(names) > s.limits.Entries {
			break // directory says so
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		if s.force && strings.HasPrefix(name, tempPrefix) {
			unix.Unlinkat(fd, name, 0)
		}
		return tempname.Hidden(name)
	})
	slices.Sort(names)
	return names, nil
}

// child returns the entry of a file. It is nil if the file no longer exists. If the file is a
// directory that is to be scanned, child returns that.
func (s *scan) child(dir int, name, path string, then *entry) (*entry, *subdirectory, error) {
	if then != nil && then.kind == directory { // it still is one, most likely
		if fd, err := openDir(dir, name); err == nil {
			return nil, &subdirectory{fd: fd}, nil
		}
	}
	var st unix.Stat_t
	now := time.Now()
	if err := fstatat(dir, name, &st); err != nil {
		return s.unreadable(&entry{name: name}, path, err)
	}
	if then != nil && then.kind != skipped && then.kind != directory && then.unchanged(&st) {
		if s.bytes.Add(then.size) > s.limits.Bytes {
			return nil, nil, s.tooLarge()
		}
		return then, nil, nil
	}
	e, err := s.newEntry(name, skipped, &st, now), error(nil)
	if s.mounts[path] {
		return skip(e, otherDevice), nil, nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if uint64(st.Dev) != s.dev {
			return skip(e, otherDevice), nil, nil
		}
		e = s.newEntry(name, directory, &st, now)
		sub := &subdirectory{mode: e.mode}
		if sub.fd, sub.forced, err = s.openChild(dir, e, unix.O_DIRECTORY); err == nil {
			return nil, sub, nil
		}
	case unix.S_IFREG:
		if e.asIs {
			e.kind = file
			break
		}
		e, err = s.file(dir, e, path)
	case unix.S_IFLNK:
		e.kind, e.more = link, &more{}
		e.more.target, err = readlink(dir, name)
	case unix.S_IFIFO:
		e.kind = fifo
	case unix.S_IFSOCK:
		skip(e, "it is a socket")
	default:
		skip(e, "it is a device")
	}
	if err != nil {
		return s.unreadable(e, path, err)
	}
	return e, nil, nil
}

// unreadable returns a skipped entry if the error is of that file, and the error otherwise.
func (s *scan) unreadable(e *entry, path string, err error) (*entry, *subdirectory, error) {
	var errno syscall.Errno
	switch {
	case err == errChanged:
		return skip(e, err.Error()), nil, nil
	case !errors.As(err, &errno):
		return nil, nil, err
	case errno == unix.ENOENT:
		return nil, nil, nil
	case mayBeSkipped(errno):
		return skip(e, errno.Error()), nil, nil
	case errno == unix.ELOOP, errno == unix.ENOTDIR, errno == unix.ENXIO:
		return skip(e, errChanged.Error()), nil, nil
	}
	return nil, nil, fmt.Errorf("%q: %w", path, err)
}

// openChild opens a file for reading. forced says that a directory has got permissions for it.
func (s *scan) openChild(dir int, e *entry, flags int) (fd int, forced bool, err error) {
	fd, err = openat(dir, e.name, unix.O_RDONLY|unix.O_NOCTTY|flags)
	if err != unix.EACCES || !s.force || int(e.uid) != unix.Geteuid() {
		return fd, false, err
	}
	path, err := openat(dir, e.name, unix.O_PATH|flags)
	if err != nil {
		return -1, false, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if fstat(path, &st) != nil || !e.isStill(&st) ||
		unix.Chmod(fdPath(path), e.mode|0o500) != nil {
		return -1, false, unix.EACCES
	}
	fd, err = openat(dir, e.name, unix.O_RDONLY|unix.O_NOCTTY|flags)
	if err != nil || flags&unix.O_DIRECTORY == 0 {
		unix.Chmod(fdPath(path), e.mode)
		return fd, false, err
	}
	return fd, true, nil
}

// otherDevice says why a directory is skipped on which a file system is mounted.
const otherDevice = "it is another file system"

func skip(e *entry, why string) *entry {
	e.kind, e.more = skipped, &more{why: why}
	return e
}

func (s *scan) tooLarge() error {
	return fmt.Errorf("the directory has more than %d bytes: give one further down, or allow more",
		s.limits.Bytes)
}
