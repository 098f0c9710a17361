//go:build linux || darwin || freebsd || netbsd || openbsd

package tty

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Control calls do with the descriptor of f, and returns the error of do. (os.File.Fd would put f
// in blocking mode, in which Close does not end a Read.)
func Control(f syscall.Conn, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var doErr error
	err = conn.Control(func(fd uintptr) { doErr = do(int(fd)) })
	return errors.Join(err, doErr)
}

// ChangeModes calls change with the terminal's modes, and sets the result. f is either end of the
// terminal.
func ChangeModes(f syscall.Conn, change func(*unix.Termios)) error {
	return Control(f, func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, ioctlGetTermios)
		if err != nil {
			return os.NewSyscallError("get terminal modes", err)
		}
		change(modes)
		return os.NewSyscallError("set terminal modes",
			unix.IoctlSetTermios(fd, ioctlSetTermios, modes))
	})
}

// Echoes reports whether the terminal echoes input. f is either end of it.
func Echoes(f syscall.Conn) bool {
	echo := false
	Control(f, func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, ioctlGetTermios)
		echo = err == nil && modes.Lflag&unix.ECHO != 0
		return err
	})
	return echo
}

// Readable reports whether the terminal's master has output that has not been read. (On Linux, poll
// first passes written data through the line discipline: n_tty_poll.)
func Readable(master syscall.Conn) bool {
	ready := false
	Control(master, func(fd int) error {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ready = err == nil && n > 0
		return err
	})
	return ready
}
