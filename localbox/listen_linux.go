package localbox

import "syscall"

// private sets the permissions with which bind makes a Unix socket's file, so that no other user
// can connect before Listen sets them.
func private(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { syscall.Fchmod(int(fd), 0o600) })
}
