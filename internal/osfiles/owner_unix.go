//go:build linux || darwin || freebsd || netbsd || openbsd

package osfiles

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Chown implements shellbox.FileClient.
func (Client) Chown(name string, like fs.FileInfo) error {
	stat, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	return os.Lchown(name, int(stat.Uid), int(stat.Gid))
}
