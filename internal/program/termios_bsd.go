//go:build darwin || freebsd || netbsd || openbsd

package program

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TIOCGETA
	ioctlSetTermios = unix.TIOCSETA
	iutf8           = 0
)
