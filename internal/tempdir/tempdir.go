// Package tempdir makes temporary directories that another process can take away once their owner
// has ended, however it has: the owner holds a lock (flock) on its directory, which the kernel
// drops at the process's end. An id would say less: it may be another process's by then, or another
// pid namespace's. Where there is no such lock (Windows), nothing is taken away.
package tempdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Dir is a temporary directory of this process.
type Dir struct {
	Path string
	lock *os.File // nil where there are no locks
}

// Make makes a directory in os.TempDir whose name begins with prefix, for this process's user only.
func Make(prefix string) (*Dir, error) {
	for {
		path, err := os.MkdirTemp("", prefix)
		if err != nil {
			return nil, err
		}
		lock, err := own(path)
		if err == nil {
			return &Dir{path, lock}, nil
		}
		// else Reap was faster, which took it for one that nobody owns
		if !errors.Is(err, fs.ErrNotExist) {
			os.Remove(path)
			return nil, err
		}
	}
}

// Remove removes the directory with all that is in it.
func (d *Dir) Remove() error {
	err := RemoveAll(d.Path)
	if d.lock != nil {
		d.lock.Close()
	}
	return err
}

// Reap calls take for each directory with that prefix whose owner has ended, and then removes it,
// unless take fails. It returns how many it has removed. It leaves what is another user's.
func Reap(prefix string, take func(path string) error) (removed int, err error) {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(os.TempDir(), e.Name())
		lock := abandoned(path)
		if lock == nil {
			continue
		}
		err := take(path)
		if err == nil {
			err = RemoveAll(path)
		}
		lock.Close()
		if err == nil {
			removed++
		} else {
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

// RemoveAll removes dir although there may be read-only directories in it, as Go's module cache has
// them.
func RemoveAll(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				os.Chmod(p, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	return err
}
