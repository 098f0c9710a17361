//go:build !unix || solaris || aix

package harness

import (
	"io"
	"os"
)

// lockPath opens the file, and locks nothing: this system has no flock.
func lockPath(path string) (io.Closer, error) { return openFile(path, os.O_RDWR|os.O_CREATE) }
