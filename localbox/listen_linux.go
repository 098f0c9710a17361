package localbox

import "syscall"

// private sets the permissions with which bind makes a Unix socket's file. So no other user can
// connect before Listen has set the file's permissions.
func private(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { syscall.Fchmod(int(fd), 0o600) })
}
