//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
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

// TestAttributesOf asks for the attributes of more files than one question and one answer have.
func TestAttributesOf(t *testing.T) {
	sb, w := newSandbox(t)
	lister := sb.Files().(hostapi.AttributesLister)
	long := w.b.dir + strings.Repeat("/.", 1000) + "/"
	value := bytes.Repeat([]byte{'x'}, 2000)
	var names []string
	var want []map[string][]byte
	for i := range 600 { // 1.2 MB of paths, and 1.2 MB of values
		name := fmt.Sprint(long, i)
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		names, want = append(names, name), append(want, map[string][]byte{"a": value})
		err := unix.Setxattr(name, "user.a", value, 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skipf("the file system of %s keeps no attributes: set TMPDIR to one that does", name)
		}
		require.NoError(t, err)
	}
	names = append(names, long+"none", long+strings.Repeat("x", 2<<20))
	want = append(want, nil, nil)
	var got []map[string][]byte
	calls := 0
	for ; len(got) < len(names); calls++ {
		list, err := lister.AttributesOf(t.Context(), names[len(got):])
		require.NoError(t, err)
		got = append(got, list...)
	}
	require.Equal(t, want, got)
	require.Equal(t, 3, calls) // the second ends before the name that is too long
	list, err := lister.AttributesOf(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, list)
}
