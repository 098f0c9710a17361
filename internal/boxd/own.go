//go:build linux

package main

import (
	"os"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/programs"
	"golang.org/x/sys/unix"
)

// openStreams opens the program's standard streams; see programs.OpenPipes.
func (p *prepared) openStreams() (ours, theirs [3]*os.File, err error) {
	if p.path == wire.OwnProgram {
		return openSockets()
	}
	return programs.OpenPipes()
}

// openSockets is programs.OpenPipes with pairs of sockets. Another program of the same user can
// open a pipe through /proc/PID/fd, and then answer in place of the program that serves the files.
// It cannot open a socket.
func openSockets() (ours, theirs [3]*os.File, err error) {
	for i := range ours {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return ours, theirs, os.NewSyscallError("socketpair", err)
		}
		unused := unix.SHUT_WR // of the direction that is not used; nobody would read from it
		if i == 0 {
			unused = unix.SHUT_RD
		}
		unix.Shutdown(fds[0], unused)
		unix.SetNonblock(fds[0], true)
		ours[i], theirs[i] = os.NewFile(uintptr(fds[0]), "socket"),
			os.NewFile(uintptr(fds[1]), "socket")
	}
	return ours, theirs, nil
}
