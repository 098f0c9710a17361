//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package localbox

import (
	"errors"
	"io/fs"
)

// Chown implements shellbox.FileClient.
func (files) Chown(string, fs.FileInfo) error { return errors.ErrUnsupported }
