//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package archive

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

const openFlags = 0

type fileID struct{}

func hardLinked(fs.FileInfo) (fileID, bool) { return fileID{}, false }

func allocated(fs.FileInfo) (int64, bool) { return 0, false }

func mkfifo(string) error { return errors.ErrUnsupported }

// A directory makes files in a directory.
type directory struct{ root *os.Root }

func openDirectory(root *os.Root, name string) (directory, error) {
	root, err := root.OpenRoot(name)
	return directory{root}, err
}

func (d directory) Close() error { return d.root.Close() }

func (d directory) create(name string, mode fs.FileMode, modified time.Time,
	fill func(target) error) error {
	return writeFile(d.root, name, mode, modified, func(f *os.File) error { return fill(f) })
}
