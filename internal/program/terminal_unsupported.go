//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package program

import (
	"errors"
	"os"
	"syscall"
)

// OpenTerminal makes a terminal, on other systems.
func OpenTerminal(rows, cols int) (master, tty *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}

// Resize sets the terminal's size.
func Resize(master syscall.Conn, rows, cols int) error { return errors.ErrUnsupported }

func enterable(string) error { return nil }
