//go:build darwin || freebsd || netbsd || openbsd

package tty

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TIOCGETA
	ioctlSetTermios = unix.TIOCSETA
)

// IUTF8 is the input mode in which the erase key erases whole characters of UTF-8. It is 0 if the
// system has no such mode.
const IUTF8 = 0
