//go:build unix && !solaris && !aix

package tempdir

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lockNew locks a new directory. If another process has removed it before, the error is
// fs.ErrNotExist.
func lockNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for {
		// A Reap that inspects the directory holds the lock.
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err == nil && !stillNames(f, path) {
		err = fs.ErrNotExist
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockAbandoned locks and returns a directory of this user whose owner has ended. For any other
// directory it returns nil.
func lockAbandoned(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	var stat unix.Stat_t
	if unix.Fstat(int(f.Fd()), &stat) == nil && int(stat.Uid) == os.Geteuid() &&
		unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && stillNames(f, path) {
		return f
	}
	f.Close()
	return nil
}

// stillNames reports whether path still names the file f.
func stillNames(f *os.File, path string) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(here, there)
}
