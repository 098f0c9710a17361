//go:build linux && !386 && !arm

package fsuser

import "golang.org/x/sys/unix"

const (
	setfsuid  = unix.SYS_SETFSUID
	setfsgid  = unix.SYS_SETFSGID
	setgroups = unix.SYS_SETGROUPS
	setresuid = unix.SYS_SETRESUID
	setresgid = unix.SYS_SETRESGID
	geteuid   = unix.SYS_GETEUID
	getegid   = unix.SYS_GETEGID
)
