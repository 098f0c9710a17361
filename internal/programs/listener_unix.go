//go:build linux || darwin || freebsd || netbsd || openbsd

package programs

import (
	"os"
	"syscall"
)

// shutdown makes a socket stop listening, for all processes that have it open.
func shutdown(socket *os.File) {
	if c, err := socket.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	}
}
