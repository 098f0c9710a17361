//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// What is about as long as a message carries is read, written and listed, whatever the way.
func TestWholeFiles(t *testing.T) {
	sb, w := newSandbox(t)
	f := sb.Files()
	name := filepath.Join(w.b.dir, "f")
	for _, size := range []int{0, 1, wire.FileDataMax - 1, wire.FileDataMax, wire.FileDataMax + 1} {
		content := bytes.Repeat([]byte{'x'}, size)
		require.NoError(t, f.WriteFile(t.Context(), name, content, 0o640))
		got, err := f.ReadFile(t.Context(), name, 0)
		require.NoError(t, err)
		require.Equal(t, content, got)
		for _, limit := range []int64{1, wire.FileDataMax - 1, wire.FileDataMax} {
			got, err := f.ReadFile(t.Context(), name, limit)
			if int64(size) <= limit {
				require.NoError(t, err)
				require.Equal(t, content, got)
				continue
			}
			var large *sandbox.TooLargeError
			require.ErrorAs(t, err, &large)
			require.Equal(t, sandbox.TooLargeError{Name: name, Size: int64(size), Limit: limit},
				*large)
		}
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o640), info.Mode())
	}
	_, err := f.ReadFile(t.Context(), "/proc/self/status", 10)
	var large *sandbox.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, int64(-1), large.Size)

	fifo := filepath.Join(w.b.dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	_, err = f.ReadFile(t.Context(), fifo, 0)
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorIs(t, f.WriteFile(t.Context(), fifo, nil, 0o600), fs.ErrInvalid)
	_, err = f.ReadDir(t.Context(), fifo)
	require.ErrorIs(t, err, unix.ENOTDIR)
	require.ErrorIs(t, f.WriteFile(t.Context(), name+"/f", nil, 0o600), unix.ENOTDIR)
	for _, count := range []int{3, 6_000} { // the second list does not fit
		dir := filepath.Join(w.b.dir, fmt.Sprint(count))
		require.NoError(t, os.Mkdir(dir, 0o700))
		for i := range count {
			name := fmt.Sprintf("%s/%06d%s", dir, i, strings.Repeat("n", 200))
			require.NoError(t, os.WriteFile(name, make([]byte, i%3), 0o600))
		}
		require.NoError(t, os.Symlink("nowhere", dir+"/z"))
		entries, err := f.ReadDir(t.Context(), dir)
		require.NoError(t, err)
		require.Len(t, entries, count+1)
		link, err := f.Lstat(t.Context(), dir+"/z")
		require.NoError(t, err)
		for i, e := range entries[:count] {
			info, err := e.Info()
			require.NoError(t, err)
			require.Equal(t, int64(i%3), info.Size())
			require.Equal(t, fs.FileMode(0o600), info.Mode())
		}
		last, err := entries[count].Info()
		require.NoError(t, err)
		require.Equal(t, link.Mode(), last.Mode())
		require.Equal(t, link.ModTime(), last.ModTime())
		require.Equal(t, link.Sys(), last.Sys())
	}
}
