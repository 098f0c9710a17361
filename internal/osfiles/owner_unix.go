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

// OwnerOf implements shellbox.FileChanger.
func (Client) OwnerOf(info fs.FileInfo) (uid, gid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}
