package osfiles

import (
	"strings"

	"golang.org/x/sys/unix"
)

// copyAttributes copies the ACL and the extended attributes of a file to another file, and ignores
// errors. It does not copy attributes that vouch for the content, such as capabilities and
// signatures.
func copyAttributes(from, to string) {
	list := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Llistxattr(from, list)
	if err != nil {
		return
	}
	value := make([]byte, 64<<10)
	for name := range strings.SplitSeq(string(list[:n]), "\x00") {
		if name == "" || strings.HasPrefix(name, "security.") && name != "security.selinux" {
			continue
		}
		if n, err := unix.Lgetxattr(from, name, value); err == nil {
			_ = unix.Lsetxattr(to, name, value[:n], 0)
		}
	}
}
