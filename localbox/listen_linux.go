package localbox

import "syscall"

// private gives a Unix socket the permissions with which bind will make its file: nobody else can
// connect in the moment before they are changed.
func private(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { syscall.Fchmod(int(fd), 0o600) })
}
