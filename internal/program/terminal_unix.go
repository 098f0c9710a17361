//go:build linux || darwin || freebsd || netbsd || openbsd

package program

import (
	"errors"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// OpenTerminal makes a terminal: its master goes through the runtime's poller, so that Close frees a Read; tty is for the program, to be
// closed here once it runs. It is in canonical mode with echo, without ONLCR, and knows UTF-8 where the system has a mode for it. ECHOCTL
// is off so that the interrupt key does not show as ^C in the output.
func OpenTerminal(rows, cols int) (master, tty *os.File, err error) {
	blocking, tty, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	master, err = pollable(blocking)
	blocking.Close()
	if err == nil {
		err = errors.Join(Resize(master, rows, cols), setModes(tty))
	}
	if err != nil {
		tty.Close()
		if master != nil {
			master.Close()
		}
		return nil, nil, err
	}
	return master, tty, nil
}

// pollable returns a copy of f that goes through the runtime's poller. creack/pty calls Fd on its files, which puts them in blocking
// mode for good.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("set non-blocking mode", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func setModes(tty *os.File) error {
	return Control(tty, func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, ioctlGetTermios)
		if err != nil {
			return os.NewSyscallError("get terminal modes", err)
		}
		modes.Oflag &^= unix.ONLCR
		modes.Lflag &^= unix.ECHOCTL
		modes.Iflag |= iutf8
		return os.NewSyscallError("set terminal modes", unix.IoctlSetTermios(fd, ioctlSetTermios, modes))
	})
}

// Resize sets the terminal's size.
func Resize(master syscall.Conn, rows, cols int) error {
	return Control(master, func(fd int) error {
		return os.NewSyscallError("set terminal size", unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)}))
	})
}

// Control calls do with the descriptor of f. (Fd would put f in blocking mode, and Close would no longer free a Read.)
func Control(f syscall.Conn, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var doErr error
	err = conn.Control(func(fd uintptr) { doErr = do(int(fd)) })
	return errors.Join(err, doErr)
}

func enterable(dir string) error { return unix.Access(dir, unix.X_OK) }
