package tty

import "golang.org/x/sys/unix"

const (
	ioctlGetTermios = unix.TCGETS
	ioctlSetTermios = unix.TCSETS
)

// IUTF8 is the input mode in which the erase key erases whole characters of UTF-8. It is 0 if the
// system has no such mode.
const IUTF8 = unix.IUTF8
