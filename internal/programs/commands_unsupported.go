//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package programs

import (
	"errors"
	"os"
)

// OpenCommands returns errors.ErrUnsupported.
func OpenCommands() (theirs, ours *os.File, err error) { return nil, nil, errors.ErrUnsupported }
