//go:build linux || darwin || freebsd || netbsd || openbsd

package programs

import (
	"errors"
	"os"
	"syscall"

	"github.com/creack/pty"
	"github.com/sandshell/sandshell/internal/tty"
	"golang.org/x/sys/unix"
)

// Supported reports whether this system has Unix terminals. If it is false, functions that start
// programs or open terminals return errors.ErrUnsupported.
const Supported = true

// OpenTerminal opens a new terminal of that size, in characters; 0 by 0 is an unknown size. The
// program gets end as its standard input, output and error, and as its controlling terminal. Once
// it runs, the caller must close end: otherwise the master's reader would never see the end. When
// the master is closed, the terminal hangs up, and a Read of the master returns.
//
// The modes are those of a shellbox.Terminal: canonical mode with echo and without ONLCR. ECHOCTL
// is off, so that the interrupt key does not show as ^C in the output. IUTF8 is on if the system
// has it.
func OpenTerminal(rows, cols int) (master, end *os.File, err error) {
	blocking, end, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	master, err = pollable(blocking)
	blocking.Close()
	if err == nil {
		err = errors.Join(Resize(master, rows, cols), tty.ChangeModes(end,
			func(modes *unix.Termios) {
				modes.Oflag &^= unix.ONLCR
				modes.Lflag &^= unix.ECHOCTL
				modes.Iflag |= tty.IUTF8
			}))
	}
	if err != nil {
		end.Close()
		if master != nil {
			master.Close()
		}
		return nil, nil, err
	}
	return master, end, nil
}

// pollable returns a copy of f that goes through the runtime's poller, so that Close ends a Read.
// creack/pty calls Fd on its files, which puts them in blocking mode for good.
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

// Resize sets the size, in characters, of the terminal that master belongs to. The programs on it
// get SIGWINCH.
func Resize(master syscall.Conn, rows, cols int) error {
	return tty.Control(master, func(fd int) error {
		return os.NewSyscallError("set terminal size",
			unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows),
				Col: uint16(cols)}))
	})
}

// readNow reads once. The error is EAGAIN if there is nothing to read yet.
func readNow(fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = unix.Read(int(fd), b); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// enterable checks the rights that chdir needs. access(2) would check those of the real user, who
// may be another.
func enterable(dir string) error {
	var st unix.Stat_t
	return unix.Stat(dir+"/.", &st)
}
