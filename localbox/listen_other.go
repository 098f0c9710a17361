//go:build !linux

package localbox

import "syscall"

// private does nothing here: until Listen sets the socket's permissions, they depend on the umask.
func private(string, string, syscall.RawConn) error { return nil }
