package localbox

import (
	"strings"

	"golang.org/x/sys/unix"
)

// copyAttributes gives a file the ACL and the extended attributes of another, as far as it may. It
// does not copy those that vouch for the content, such as capabilities and signatures.
func copyAttributes(from, to string) {
	list := make([]byte, 64<<10) // the most that Linux has
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
