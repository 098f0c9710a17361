//go:build unix && !solaris && !aix

package tempdir

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// own locks a new directory. The error is fs.ErrNotExist if another process has removed it
// meanwhile.
func own(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for {
		// this waits for a Reap that inspects the directory
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

// abandoned locks and returns a directory of this user whose owner has ended; for any other it
// returns nil.
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

// same reports whether path still names the file f.
func same(f *os.File, path string) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(here, there)
}
