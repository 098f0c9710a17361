package localbox_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/localbox"
)

// TestWriteFileKeepsAttributes checks that WriteFile keeps a file's ACL and extended attributes.
func TestWriteFileKeepsAttributes(t *testing.T) {
	name := t.TempDir() + "/f"
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o640))
	acl := []byte{2, 0, 0, 0} // version 2: the owner may read and write, user 12345 may read
	for _, e := range [][2]uint32{{1, 6}, {2, 4}, {4, 4}, {16, 4}, {32, 0}} {
		id := uint32(0xffffffff)
		if e[0] == 2 {
			id = 12345
		}
		acl = append(acl, byte(e[0]), 0, byte(e[1]), 0, byte(id), byte(id>>8), byte(id>>16),
			byte(id>>24))
	}
	set := map[string][]byte{"user.note": []byte("kept"), "system.posix_acl_access": acl}
	for attr, value := range set {
		err := unix.Setxattr(name, attr, value, 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skip("the temporary directory's file system has no extended attributes")
		}
		require.NoError(t, err, attr)
	}
	box := open(t, localbox.Config{})
	require.NoError(t, box.Files().WriteFile(t.Context(), name, []byte("new"), 0o600))
	for attr, value := range set {
		got := make([]byte, 100)
		n, err := unix.Getxattr(name, attr, got)
		require.NoError(t, err, attr)
		require.Equal(t, value, got[:n], attr)
	}
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode())
}
