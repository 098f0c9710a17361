package sftpfiles

import (
	"io/fs"
	"syscall"

	"github.com/pkg/sftp"
)

// Chown implements shellbox.FileClient.
func (c *Client) Chown(name string, like fs.FileInfo) error {
	stat, ok := like.Sys().(*sftp.FileStat)
	if !ok {
		return syscall.EINVAL
	}
	return c.explain("chown", name, c.sftp.Chown(name, int(stat.UID), int(stat.GID)))
}

// SetOwner implements shellbox.FileChanger. SFTP has no word for an owner that stays. -1 reaches
// the server as the greatest number of 32 bits, which the kernel takes for -1.
func (c *Client) SetOwner(name string, uid, gid int) error {
	return c.explain("chown", name, c.sftp.Chown(name, uid, gid))
}

// OwnerOf implements shellbox.FileChanger.
func (c *Client) OwnerOf(info fs.FileInfo) (uid, gid int, ok bool) {
	stat, ok := info.Sys().(*sftp.FileStat)
	if !ok {
		return 0, 0, false
	}
	return int(stat.UID), int(stat.GID), true
}

// Symlink implements shellbox.FileChanger.
func (c *Client) Symlink(target, name string) error {
	return c.explain("symlink", name, c.sftp.Symlink(target, name))
}
