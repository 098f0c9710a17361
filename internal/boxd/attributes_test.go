//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWriteKeepsAttributes replaces a file that has an ACL and an extended attribute, in one
// message and in several steps.
func TestWriteKeepsAttributes(t *testing.T) {
	sb, w := newSandbox(t)
	name := filepath.Join(w.b.dir, "f")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o640))
	// Version 2: the owner may read and write, user 12345 may read.
	acl := []byte{2, 0, 0, 0}
	for _, e := range [][]byte{{1, 6}, {2, 4, 0x39, 0x30, 0, 0}, {4, 4}, {16, 4}, {32, 0}} {
		if len(e) == 2 {
			e = append(e, 255, 255, 255, 255) // no id
		}
		acl = append(acl, e[0], 0, e[1], 0, e[2], e[3], e[4], e[5])
	}
	set := map[string][]byte{"user.note": []byte("kept"), "system.posix_acl_access": acl}
	for attr, value := range set {
		err := unix.Setxattr(name, attr, value, 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skipf("the file system of %s has no attribute %s: set TMPDIR to one that has", name,
				attr)
		}
		require.NoError(t, err, attr)
	}
	for _, size := range []int{3, wire.FileDataMax + 1} {
		content := bytes.Repeat([]byte{'x'}, size)
		require.NoError(t, sb.Files().WriteFile(t.Context(), name, content, 0o600))
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, content, got)
		for attr, value := range set {
			kept := make([]byte, 100)
			n, err := unix.Getxattr(name, attr, kept)
			require.NoError(t, err, "%s, %d bytes", attr, size)
			require.Equal(t, value, kept[:n], attr)
		}
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode())
	}
}
