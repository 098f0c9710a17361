//go:build !linux

package archive

import (
	"io/fs"
	"os"
)

func chmod(root *os.Root, name string, mode fs.FileMode) error { return root.Chmod(name, mode) }
