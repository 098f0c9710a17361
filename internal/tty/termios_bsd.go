//go:build darwin || freebsd || netbsd || openbsd

package tty

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TIOCGETA
	ioctlSetTermios = unix.TIOCSETA
)

// IUTF8 is the input mode in which the erase key erases whole characters of UTF-8: 0 where the
// system does not have it.
const IUTF8 = 0
