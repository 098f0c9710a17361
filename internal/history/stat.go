//go:build linux

package history

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// settle is longer than the kernel's tick.
const settle = 20 * time.Millisecond

// newEntry returns an entry with what stat has returned at that time.
func newEntry(name string, k kind, st *unix.Stat_t, at time.Time) *entry {
	e := &entry{name: name, kind: k, mode: st.Mode & 0o7777, uid: st.Uid, gid: st.Gid,
		nlink: uint32(st.Nlink), mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
		dev: uint64(st.Dev), ino: st.Ino}
	if k != directory {
		e.size = st.Size
	}
	// The kernel takes times from a clock that ticks every 1 to 10 ms. A change in the tick in
	// which stat was called, but after it, leaves the same times. Some file systems store seconds.
	tick := settle
	if st.Ctim.Nsec == 0 && st.Mtim.Nsec == 0 {
		tick = 2 * time.Second
	}
	e.racy = e.ctime > at.Add(-tick).UnixNano()
	return e
}

// unchanged reports whether the file is as it was at the last Save.
func (e *entry) unchanged(st *unix.Stat_t) bool {
	return !e.racy && e.ctime == st.Ctim.Nano() && e.isStill(st)
}

// isStill is unchanged without the ctime, which changes when another name of the file is removed.
func (e *entry) isStill(st *unix.Stat_t) bool {
	return e.ino == st.Ino && e.dev == uint64(st.Dev) && e.mtime == st.Mtim.Nano() &&
		e.mode == st.Mode&0o7777 && e.uid == st.Uid && e.gid == st.Gid &&
		(e.kind == directory) == (st.Mode&unix.S_IFMT == unix.S_IFDIR) &&
		(e.kind == directory || e.size == st.Size)
}

func openDir(dir int, name string) (int, error) {
	return openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// openat opens a file of a directory, and follows no link.
func openat(dir int, name string, flags int) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK,
			0o600)
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

func fstat(fd int, st *unix.Stat_t) error {
	return again(func() error { return unix.Fstat(fd, st) })
}

func fstatat(dir int, name string, st *unix.Stat_t) error {
	return again(func() error {
		return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// again repeats a system call until no signal interrupts it.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func readlink(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// fdPath returns a path for system calls that take no descriptor opened with O_PATH.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
