//go:build linux || darwin || freebsd || netbsd || openbsd

package programs

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenCommands opens the pipe for a shell's commands: theirs is the shell's standard input, and
// ours writes to it. It is a pair of sockets, because another program can open a pipe by
// /proc/PID/fd.
func OpenCommands() (theirs, ours *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// Writes to the standard input must fail, because no program would read them.
	unix.Shutdown(fds[1], unix.SHUT_RD)
	err = unix.SetNonblock(fds[1], true)
	theirs, ours = os.NewFile(uintptr(fds[0]), "commands"), os.NewFile(uintptr(fds[1]), "commands")
	if err != nil {
		theirs.Close()
		ours.Close()
		return nil, nil, os.NewSyscallError("set non-blocking mode", err)
	}
	return theirs, ours, nil
}
