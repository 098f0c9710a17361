//go:build linux

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/sandbox"
)

// A file that changes while a copy is made is copied as it is. A file that is removed is reported.
func TestChanges(t *testing.T) {
	dir := build(t, t.TempDir(), "d/a=A", "d/b="+strings.Repeat("b", 1<<20), "d/c=C", "d/z/x=X")
	var b bytes.Buffer
	first := true
	err := Pack(t.Context(), writerFunc(func(p []byte) (int, error) {
		if first {
			first = false
			require.NoError(t, os.Truncate(dir+"/d/b", 200_000)) // b is being read
			require.NoError(t, os.Remove(dir+"/d/c"))            // c has been listed
		}
		return b.Write(p)
	}), dir+"/d")
	left := leftOut(t, err, "/b", "/c")
	require.ErrorContains(t, left.Skipped[0], "shorter")
	require.ErrorIs(t, left.Skipped[1], fs.ErrNotExist)
	require.NotErrorIs(t, err, fs.ErrNotExist, "the copy was made")
	require.NoError(t, Unpack(t.Context(), &b, dir+"/new", Options{}))
	got := snapshot(t, dir+"/new")
	require.Len(t, got, 4)
	data, err := os.ReadFile(dir + "/new/b")
	require.NoError(t, err)
	require.Equal(t, 200_000, len(bytes.TrimRight(data, "\x00")))
	full := errors.New("full")
	require.ErrorIs(t, Pack(t.Context(), writerFunc(func([]byte) (int, error) {
		return 0, full
	}), dir+"/d"), full)
}

// leftOut checks which files a copy has left out.
func leftOut(t *testing.T, err error, names ...string) *sandbox.CopyError {
	t.Helper()
	var left *sandbox.CopyError
	require.ErrorAs(t, err, &left)
	require.Equal(t, len(names), left.Count, "%v", left)
	for i, name := range names {
		require.True(t, strings.HasSuffix(left.Skipped[i].Path, name), "%v", left.Skipped[i])
	}
	return left
}

// Files that may not be read are left out and reported. If the root may not be read, Pack fails.
func TestUnreadable(t *testing.T) {
	dir := build(t, t.TempDir(), "d/a=A", "d/no=N", "d/shut/x=X", "d/z=Z")
	for _, name := range []string{"/d/no", "/d/shut"} {
		require.NoError(t, os.Chmod(dir+name, 0))
		defer os.Chmod(dir+name, 0o700)
	}
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	var b bytes.Buffer
	err := asNobody(t, func() error { return Pack(t.Context(), &b, dir+"/d") })
	left := leftOut(t, err, "/d/no", "/d/shut")
	require.ErrorIs(t, left.Skipped[0], fs.ErrPermission)
	require.NoError(t, Unpack(t.Context(), &b, dir+"/new", Options{}))
	require.Equal(t, []string{`"a" -rw-r--r-- 1 "A"`, `"shut" d---------`, `"z" -rw-r--r-- 1 "Z"`},
		snapshot(t, dir+"/new"))
	os.Chmod(dir+"/new/shut", 0o700)
	for _, root := range []string{"/d/no", "/d/shut"} {
		isFault(t, asNobody(t, func() error {
			return Pack(t.Context(), io.Discard, dir+root)
		}), syscall.EACCES)
	}
	many := build(t, t.TempDir(), "d/")
	for i := range 300 {
		require.NoError(t, os.WriteFile(fmt.Sprint(many, "/d/", i), nil, 0))
	}
	require.ErrorAs(t, asNobody(t, func() error {
		return Pack(t.Context(), io.Discard, many+"/d")
	}), &left)
	require.Equal(t, 300, left.Count)
	require.Len(t, left.Skipped, 100)
	require.ErrorContains(t, left, "and 299 more")
}

// asNobody calls f on a thread with the file system rights of nobody.
func asNobody(t *testing.T, f func() error) error {
	t.Helper()
	if os.Geteuid() != 0 {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		if err := unix.Setfsuid(65534); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// Files that do not report their size are copied with their content.
func TestSizeless(t *testing.T) {
	for _, name := range []string{"/proc/version", "/proc/self/limits",
		"/sys/kernel/mm/transparent_hugepage/enabled", "/proc/kallsyms"} {
		want, err := os.ReadFile(name)
		if err != nil || len(want) > sizelessLimit {
			t.Log("without", name, err)
			continue
		}
		to := t.TempDir() + "/f"
		require.NoError(t, Unpack(t.Context(), bytes.NewReader(packed(t, name)), to, Options{}),
			name)
		got, err := os.ReadFile(to)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "%s: %d bytes, want %d", name, len(got), len(want))
	}
}

// Holes take no room in the archive and in the copy. The content is the same.
func TestHoles(t *testing.T) {
	const size = 1 << 40
	dir := build(t, t.TempDir(), "all=", "x=", "many=",
		"zeros="+strings.Repeat("\x00", 1<<20)+"end")
	require.NoError(t, os.Truncate(dir+"/all", size))
	require.NoError(t, os.Truncate(dir+"/x", size))
	at := func(name string, offset int64, data string) {
		f, err := os.OpenFile(dir+name, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte(data), offset)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	at("/x", 100_000, "near")
	at("/x", size-4, "end!")
	const extents, step = 3, 64 << 10
	for i := range extents {
		at("/many", int64(i)*step, fmt.Sprint("piece", i))
	}
	require.NoError(t, os.Truncate(dir+"/many", 1<<20))
	archive := packed(t, dir)
	require.Less(t, len(archive), 2<<20)
	to := t.TempDir() + "/new"
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(archive), to, Options{}))
	for _, name := range []string{"/all", "/x", "/many", "/zeros"} {
		was, err := os.Stat(dir + name)
		require.NoError(t, err)
		is, err := os.Stat(to + name)
		require.NoError(t, err)
		require.Equal(t, was.Size(), is.Size(), name)
		require.Less(t, is.Sys().(*syscall.Stat_t).Blocks*512, int64(512<<10), name)
		for _, offset := range []int64{0, step, 2 * step, 100_000, 1 << 20, was.Size() - 4} {
			want, got := make([]byte, 16), make([]byte, 16)
			read(t, dir+name, want, offset)
			read(t, to+name, got, offset)
			require.Equal(t, want, got, "%s at %d", name, offset)
		}
	}
}

func read(t *testing.T, name string, p []byte, offset int64) {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	if _, err := f.ReadAt(p, offset); err != io.EOF {
		require.NoError(t, err)
	}
}

// TestDeep copies a tree whose deepest path is longer than the system accepts.
func TestDeep(t *testing.T) {
	name := strings.Repeat("d", 240)
	root := must(os.OpenRoot(t.TempDir()))
	defer root.Close()
	dir, at := root.Name(), "x"
	require.NoError(t, root.Mkdir("x", 0o755))
	for range 40 {
		at += "/" + name
	}
	require.NoError(t, root.MkdirAll(at, 0o755))
	require.NoError(t, root.WriteFile(at+"/f", []byte("deep"), 0o644))
	require.NoError(t, Unpack(t.Context(), bytes.NewReader(packed(t, dir+"/x")), dir+"/y",
		Options{}))
	data, err := root.ReadFile("y" + at[1:] + "/f")
	require.NoError(t, err)
	require.Equal(t, "deep", string(data))
	for range 40 {
		at += "/" + name
	}
	require.NoError(t, root.MkdirAll(at, 0o755))
	left := leftOut(t, Pack(t.Context(), io.Discard, dir+"/x"), name)
	require.ErrorIs(t, left.Skipped[0], syscall.ENAMETOOLONG)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
