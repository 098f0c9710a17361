//go:build unix && !solaris && !aix

package harness

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockPath locks a file until Close, or the process's end, however it comes.
func lockPath(path string) (io.Closer, error) {
	f, err := openFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return lockedFile{f}, nil
}

// A lockedFile is unlocked by Close: a program that is being started has, until the kernel has
// executed it, all that its parent had open, and would keep the lock.
type lockedFile struct{ *os.File }

func (f lockedFile) Close() error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.File.Close())
}
