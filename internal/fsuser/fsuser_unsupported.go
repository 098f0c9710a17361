//go:build !linux

package fsuser

import "os"

// As calls f with root's rights if this process is root's, because only Linux has file system ids.
// An operation that the user may not do fails later, when the user's program tries it.
func As(_ IDs, f func()) (called bool) {
	if os.Geteuid() != 0 {
		return false
	}
	f()
	return true
}
