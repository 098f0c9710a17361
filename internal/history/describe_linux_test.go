package history

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// described returns all that a History promises to bring back of a directory: a line for each path.
func described(t testing.TB, dir string) map[string]string {
	t.Helper()
	all, links := map[string]string{}, map[uint64][]string{}
	var walk func(path string)
	walk = func(path string) {
		full := filepath.Join(dir, path)
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(full, &st))
		text := fmt.Sprintf("mode %o owner %d:%d mtime %d.%09d", st.Mode, st.Uid, st.Gid,
			st.Mtim.Sec, st.Mtim.Nsec)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			if st.Mode&0o500 != 0o500 && os.Geteuid() != 0 {
				require.NoError(t, unix.Chmod(full, 0o700))
				defer unix.Chmod(full, st.Mode&0o7777)
			}
			names := readNames(t, full)
			for _, name := range names {
				walk(filepath.Join(path, name))
			}
		case unix.S_IFREG:
			data := readData(t, full, st.Mode)
			text += fmt.Sprintf(" size %d holes %v %x", st.Size, st.Size > 1<<20 &&
				st.Blocks*512 < st.Size/2, sha256.Sum256(data))
		case unix.S_IFLNK:
			target, err := os.Readlink(full)
			require.NoError(t, err)
			text += fmt.Sprintf(" to %q", target)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			links[st.Ino] = append(links[st.Ino], path)
		}
		buf := make([]byte, 4096)
		if n, err := unix.Llistxattr(full, buf); err == nil {
			for _, name := range strings.FieldsFunc(string(buf[:n]),
				func(r rune) bool { return r == 0 }) {
				value := make([]byte, 4096)
				n, _ := unix.Lgetxattr(full, name, value)
				text += fmt.Sprintf(" %s=%q", name, value[:max(n, 0)])
			}
		}
		all[path] = text
	}
	walk(".")
	for _, paths := range links {
		slices.Sort(paths)
		for _, p := range paths[1:] {
			all[p] += " is " + paths[0]
		}
	}
	return all
}

func readNames(t testing.TB, dir string) []string {
	t.Helper()
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	require.NoError(t, err)
	slices.Sort(names)
	return names
}

// readData reads a file, also one that its owner may not read.
func readData(t testing.TB, file string, mode uint32) []byte {
	t.Helper()
	if mode&0o400 == 0 && os.Geteuid() != 0 {
		require.NoError(t, unix.Chmod(file, 0o600))
		defer unix.Chmod(file, mode&0o7777)
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return data
}

// requireSame fails if two descriptions differ, and tells how.
func requireSame(t testing.TB, want, got map[string]string, more ...any) {
	t.Helper()
	var lines []string
	for path, text := range want {
		if got[path] != text {
			lines = append(lines, fmt.Sprintf("%q\n  want %s\n  got  %s", path, text, got[path]))
		}
	}
	for path, text := range got {
		if _, ok := want[path]; !ok {
			lines = append(lines, fmt.Sprintf("%q\n  want nothing\n  got  %s", path, text))
		}
	}
	slices.Sort(lines)
	if len(lines) > 0 {
		t.Fatal(append([]any{strings.Join(lines[:min(len(lines), 20)], "\n")}, more...)...)
	}
}
