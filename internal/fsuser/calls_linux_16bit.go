//go:build linux && (386 || arm)

package fsuser

import "golang.org/x/sys/unix"

// The calls without "32" take ids of 16 bits there.
const (
	setfsuid  = unix.SYS_SETFSUID32
	setfsgid  = unix.SYS_SETFSGID32
	setgroups = unix.SYS_SETGROUPS32
	setresuid = unix.SYS_SETRESUID32
	setresgid = unix.SYS_SETRESGID32
	geteuid   = unix.SYS_GETEUID32
	getegid   = unix.SYS_GETEGID32
)
