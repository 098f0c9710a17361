//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package osfiles

import (
	"errors"
	"io/fs"
)

// Chown implements shellbox.FileClient.
func (Client) Chown(string, fs.FileInfo) error { return errors.ErrUnsupported }
