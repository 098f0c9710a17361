package programs

import "golang.org/x/sys/unix"

// wasStopped reports whether a child has been stopped, or has gone on after that, since the last
// call.
func wasStopped(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WCONTINUED|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}
