package streams

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nowWriter returns a function that writes to w what w takes without waiting, and returns how much
// that is. It returns nil unless w is a file in non-blocking mode.
func nowWriter(w io.Writer) func(text string) int {
	c, ok := w.(syscall.Conn)
	if !ok {
		return nil
	}
	conn, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	nonBlocking := false
	err = conn.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		nonBlocking = err == nil && flags&unix.O_NONBLOCK != 0
	})
	if err != nil || !nonBlocking {
		return nil
	}
	return func(text string) int {
		var n uintptr
		var errno unix.Errno
		_ = conn.Write(func(fd uintptr) bool { // the next write gets the error
			// The call does not wait, so Go's scheduler is not told: that can take longer.
			n, _, errno = unix.RawSyscall(unix.SYS_WRITE, fd,
				uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(len(text)))
			return true
		})
		if errno != 0 {
			return 0
		}
		return int(n)
	}
}
