//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package programs

import (
	"errors"
	"os"
	"syscall"
)

// Supported is whether this system has terminals as Unix has them. Where it is false, what starts
// programs or opens terminals returns errors.ErrUnsupported.
const Supported = false

// OpenTerminal returns errors.ErrUnsupported: this system has no terminals as Unix has them.
func OpenTerminal(rows, cols int) (master, end *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}

// Resize returns errors.ErrUnsupported: this system has no terminals as Unix has them.
func Resize(master syscall.Conn, rows, cols int) error { return errors.ErrUnsupported }

func enterable(string) error { return nil }
