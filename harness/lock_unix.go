//go:build unix && !solaris && !aix

package harness

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockPath locks a file until Close or the end of the process.
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

// A lockedFile is unlocked by Close before it is closed. Closing alone is not enough: a child that
// was forked and has not yet executed its program has the file open too, and would keep the lock.
type lockedFile struct{ *os.File }

func (f lockedFile) Close() error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.File.Close())
}
