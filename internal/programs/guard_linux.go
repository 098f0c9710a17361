package programs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// wasStopped reports whether a child has been stopped, or has gone on after that, since the last
// call. It never waits, so Go's scheduler is not told: to tell it can take longer than the call.
func wasStopped(pid int) bool {
	var info unix.Siginfo
	_, _, errno := unix.RawSyscall6(unix.SYS_WAITID, unix.P_PID, uintptr(pid),
		uintptr(unsafe.Pointer(&info)), unix.WSTOPPED|unix.WCONTINUED|unix.WNOHANG, 0, 0)
	return errno == 0 && info.Signo != 0
}
