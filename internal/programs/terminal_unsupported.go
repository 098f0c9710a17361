//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package programs

import (
	"errors"
	"os"
	"syscall"
)

// Supported reports whether this system has Unix terminals. If it is false, functions that start
// programs or open terminals return errors.ErrUnsupported.
const Supported = false

// OpenTerminal returns errors.ErrUnsupported: this system has no Unix terminals.
func OpenTerminal(rows, cols int) (master, end *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}

// Resize returns errors.ErrUnsupported: this system has no Unix terminals.
func Resize(master syscall.Conn, rows, cols int) error { return errors.ErrUnsupported }

func readNow(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func enterable(string) error { return nil }
