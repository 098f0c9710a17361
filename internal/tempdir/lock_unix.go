//go:build unix && !solaris && !aix

package tempdir

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// own locks a new directory. It is fs.ErrNotExist if somebody has removed that meanwhile.
func own(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for {
		// it waits for a Reap that looks at it
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err == nil && !same(f, path) {
		err = fs.ErrNotExist
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// abandoned locks a directory of this user's whose owner has ended; of any other it returns nil.
func abandoned(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	var stat unix.Stat_t
	if unix.Fstat(int(f.Fd()), &stat) == nil && int(stat.Uid) == os.Geteuid() &&
		unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && same(f, path) {
		return f
	}
	f.Close()
	return nil
}

// same reports whether f is still what is at path.
func same(f *os.File, path string) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(here, there)
}
