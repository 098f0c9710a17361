package hosttest

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// reserve binds a socket that never listens.
func reserve() (address string, release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	bound, err2 := unix.Getsockname(fd)
	if err == nil {
		err = err2
	}
	if err != nil {
		unix.Close(fd)
		return "", nil, err
	}
	return "127.0.0.1:" + strconv.Itoa(bound.(*unix.SockaddrInet4).Port), func() {
		unix.Close(fd)
	}, nil
}
