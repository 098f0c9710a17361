//go:build linux

package archive

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzPack makes a tree from a description, one entry per line. A copy of the tree equals it,
// whatever its names, modes, times and contents are.
func FuzzPack(f *testing.F) {
	for _, seed := range []string{
		"fa=x\nfb=", "da\nfa/b=x\nla/l=../up\nha/h=a/b", "f \x01\xff=\x00", "fm=x\nc7777m",
		"dro\nfro/f=x\nc0500ro", "la=a\nlb=/\nhc=a",
		"f" + strings.Repeat("n", 255) + "=x",
		"f" + strings.Repeat("d", 100) + "=x\nl" + strings.Repeat("l", 120) + "=" +
			strings.Repeat("t", 300),
		"fold=x\nt-1old\nffuture=x\nt9999999999future",
		"d.sandshell-copy-x\nf.sandshell-copy-x/f=x", "f*?[=x\nf\\=y\nf-=z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, description string) {
		dir := t.TempDir()
		from := filepath.Join(dir, "from")
		require.NoError(t, os.Mkdir(from, 0o755))
		tree, err := os.OpenRoot(from)
		require.NoError(t, err)
		defer tree.Close()
		for line := range strings.SplitSeq(description, "\n") {
			if line != "" {
				make1(tree, line[0], line[1:])
			}
		}
		if strings.Contains(description, tempPrefix) { // Pack leaves out such names
			require.NoError(t, Pack(t.Context(), &bytes.Buffer{}, from))
			return
		}
		var archive bytes.Buffer
		require.NoError(t, Pack(t.Context(), &archive, from))
		require.NoError(t, Unpack(t.Context(), &archive, filepath.Join(dir, "to"),
			Options{Trusted: true}))
		require.Equal(t, snapshot(t, from), snapshot(t, filepath.Join(dir, "to")))
	})
}

// make1 makes one entry, if possible.
func make1(tree *os.Root, kind byte, what string) {
	name, value, _ := strings.Cut(what, "=")
	var number int64
	switch kind {
	case 'f':
		tree.WriteFile(name, []byte(value), 0o644)
	case 'd':
		tree.Mkdir(name, 0o755)
	case 'l':
		tree.Symlink(value, name)
	case 'h':
		tree.Link(value, name)
	case 'c':
		// Only root can read files of any mode.
		if _, err := fmt.Sscanf(what, "%4o%s", &number, &name); err == nil && os.Geteuid() == 0 {
			tree.Chmod(name, os.FileMode(number&0o777))
		}
	case 't':
		// GNU's format has no other times.
		if _, err := fmt.Sscanf(what, "%d%s", &number, &name); err == nil && number > -1<<33 &&
			number < 1<<33 {
			tree.Chtimes(name, time.Unix(number, 0), time.Unix(number, 0))
		}
	}
}
