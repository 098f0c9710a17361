//go:build linux || darwin || freebsd || netbsd || openbsd

package archive

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openFlags are flags for opening files. With O_NONBLOCK, the open does not wait for a writer if a
// FIFO has taken the file's place. It also saves four system calls, with which package os would
// find out that a file cannot be polled.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

type fileID struct{ dev, ino uint64 }

// hardLinked returns the identity of a file that has other names too.
func hardLinked(info fs.FileInfo) (fileID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), uint64(st.Ino)}, true
}

// allocated returns how many bytes of a file the file system says to have stored. ok is false if
// it does not say so.
func allocated(info fs.FileInfo) (n int64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int64(st.Blocks) * 512, true
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

// A directory makes files in a directory. It does not use package os, which makes twice as many
// system calls. For a small file, system calls take most of the time.
type directory struct{ f *os.File }

func openDirectory(root *os.Root, name string) (directory, error) {
	f, err := root.Open(name)
	return directory{f}, err
}

func (d directory) Close() error { return d.f.Close() }

// create makes a file. name must not be a path and must not exist, so that no link can lead out of
// the directory.
func (d directory) create(name string, mode fs.FileMode, modified time.Time,
	fill func(target) error) error {
	times, err := unix.TimeToTimespec(modified)
	if err != nil {
		return err
	}
	dir := int(d.f.Fd())
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(dir, name,
			unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return err
	}
	err = fill(descriptor(fd))
	if err == nil {
		err = unix.Fchmod(fd, chmodBits(mode)) // the mode given to Openat was subject to the umask
	}
	if closed := unix.Close(fd); err == nil && closed != unix.EINTR {
		err = closed
	}
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{times, times}, unix.AT_SYMLINK_NOFOLLOW)
}

// A descriptor is a file that is written to.
type descriptor int

func (fd descriptor) WriteAt(p []byte, at int64) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = ignoringEINTR(func() (int, error) {
			return unix.Pwrite(int(fd), p[n:], at+int64(n))
		})
		n += max(m, 0)
	}
	return n, err
}

func (fd descriptor) Truncate(size int64) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, unix.Ftruncate(int(fd), size) })
	return err
}

// chmodBits returns the argument of chmod for a mode.
func chmodBits(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSetuid != 0 {
		bits |= unix.S_ISUID
	}
	if mode&fs.ModeSetgid != 0 {
		bits |= unix.S_ISGID
	}
	if mode&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits
}

// ignoringEINTR repeats a system call until no signal interrupts it.
func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
