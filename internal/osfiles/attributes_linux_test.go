package osfiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/osfiles"
)

// TestAttributes reads and removes attributes that other programs have set: long ones, many, and
// those of other namespaces.
func TestAttributes(t *testing.T) {
	t.Parallel()
	c, name := osfiles.Client{}, filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	want := map[string][]byte{"long": []byte(strings.Repeat("x", 1500))}
	for i := range 40 { // more than fits into the first list
		want["name-of-some-length-"+strconv.Itoa(i)] = []byte{byte(i)}
	}
	for key, value := range want {
		err := unix.Setxattr(name, "user."+key, value, 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skip("the file system keeps no attributes: set TMPDIR to one that does")
		}
		require.NoError(t, err)
	}
	if os.Geteuid() == 0 {
		require.NoError(t, unix.Setxattr(name, "trusted.hidden", nil, 0))
	}
	got, err := c.Attributes(name)
	require.NoError(t, err)
	require.Equal(t, want, got)

	for key := range want {
		want[key] = nil
	}
	want["only"] = []byte(strings.Repeat("y", 3000)) // ext4 has no room for both
	require.NoError(t, c.SetAttributes(name, want))
	got, err = c.Attributes(name)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"only": want["only"]}, got)
}

// TestAttributesOf asks for more than one answer may have.
func TestAttributesOf(t *testing.T) {
	t.Parallel()
	c, dir := osfiles.Client{}, t.TempDir()
	names := []string{filepath.Join(dir, "none")}
	value := []byte(strings.Repeat("x", 2000))
	for i := range 600 {
		name := filepath.Join(dir, strconv.Itoa(i))
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		err := c.SetAttributes(name, map[string][]byte{"a": value})
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip("the file system keeps no attributes: set TMPDIR to one that does")
		}
		require.NoError(t, err)
		names = append(names, name)
	}
	list, err := c.AttributesOf(names)
	require.NoError(t, err)
	require.Nil(t, list[0])
	for _, attributes := range list[1:] {
		require.Equal(t, map[string][]byte{"a": value}, attributes)
	}
	require.Len(t, list, 1+hostapi.AttributesMax/(hostapi.AttributeSize("a", value)+
		hostapi.AttributeSize("", nil)))
}

// TestNoAttributes asks files that can have none.
func TestNoAttributes(t *testing.T) {
	t.Parallel()
	c := osfiles.Client{}
	_, err := c.Attributes("/proc/self/comm")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "the file system keeps no extended attributes")
	err = c.SetAttributes("/proc/self/comm", map[string][]byte{"a": {}})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "the file system keeps no extended attributes")

	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	got, err := c.Attributes(fifo) // and does not wait for its writer
	require.NoError(t, err)
	require.Empty(t, got)
	require.ErrorIs(t, c.SetAttributes(fifo, map[string][]byte{"a": {}}), os.ErrPermission)
}
