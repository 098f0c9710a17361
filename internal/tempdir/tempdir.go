// Package tempdir makes temporary directories that another process can remove after their owner has
// ended, even if it was killed. The owner holds a lock (flock) on its directory. The kernel
// releases the lock when the process ends. A process id would not do: another process, or another
// pid namespace, may use it later. On systems without such locks (Windows), nothing is removed.
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
	lock *os.File // nil on a system without locks
}

// Make makes a directory in os.TempDir whose name begins with prefix. Only this process's user may
// enter it.
func Make(prefix string) (*Dir, error) {
	for {
		path, err := os.MkdirTemp("", prefix)
		if err != nil {
			return nil, err
		}
		lock, err := lockNew(path)
		if err == nil {
			return &Dir{path, lock}, nil
		}
		// fs.ErrNotExist: another process's Reap has removed it before it was locked.
		if !errors.Is(err, fs.ErrNotExist) {
			os.Remove(path)
			return nil, err
		}
	}
}

// Remove removes the directory and its contents.
func (d *Dir) Remove() error {
	err := RemoveAll(d.Path)
	if d.lock != nil {
		d.lock.Close()
	}
	return err
}

// Reap calls inspect for each directory with that prefix whose owner has ended. Then it removes the
// directory, unless inspect has failed. It returns how many it has removed. Directories of other
// users stay.
func Reap(prefix string, inspect func(path string) error) (removed int, err error) {
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
		lock := lockAbandoned(path)
		if lock == nil {
			continue
		}
		err := inspect(path)
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

// RemoveAll removes dir, even if it contains read-only directories, as Go's module cache does.
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
