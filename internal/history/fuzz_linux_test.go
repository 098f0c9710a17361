package history

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// seedTrees returns a tree as it is written, and a patch for it.
func seedTrees(f *testing.F) (tree, patch []byte) {
	dir := f.TempDir()
	h := open(f, dir)
	trees := func() []byte {
		_, err := h.Save(f.Context())
		require.NoError(f, err)
		text, err := os.ReadFile(filepath.Join(h.store, treesFile))
		require.NoError(f, err)
		return text
	}
	sh(f, dir, "echo a >f; ln f g; mkdir -p d/e; echo b >d/e/h; ln -s x l; mkfifo p; "+
		"truncate -s 1M holes; setfattr -n user.x -v y f 2>/dev/null || true")
	tree = trees()
	sh(f, dir, "rm f; echo c >d/e/i; rm -r l; mkdir l; echo d >l/m")
	return tree, trees()[len(tree):]
}

// FuzzDecode reads trees and patches that other programs have written.
func FuzzDecode(f *testing.F) {
	tree, patch := seedTrees(f)
	f.Add(tree, patch)
	f.Add(tree, tree)
	f.Add([]byte("d\x00\x00"), []byte("d\x00\x00"))
	f.Fuzz(func(t *testing.T, tree, patch []byte) {
		root, err := decodeTree(string(tree))
		if err != nil {
			return
		}
		checkTree(t, root, true)
		again, err := decodeTree(string(appendTree(nil, root)))
		require.NoError(t, err)
		require.Empty(t, changes(again, root))
		measure(root)
		leadersOf(root)
		patched, err := decodePatch(string(patch), root)
		if err != nil {
			return
		}
		checkTree(t, patched, true)
		again, err = decodePatch(string(appendPatch(nil, patched, root)), root)
		require.NoError(t, err)
		require.Equal(t, appendTree(nil, patched), appendTree(nil, again))
		changes(patched, root)
	})
}

// checkTree checks what the rest of the package relies on.
func checkTree(t *testing.T, e *entry, isRoot bool) {
	require.True(t, isRoot || goodName(e.name), "%q", e.name)
	require.Zero(t, e.mode&^0o7777)
	require.GreaterOrEqual(t, e.at, int64(0))
	require.GreaterOrEqual(t, e.size, int64(0))
	end := int64(0)
	for _, x := range e.extents() {
		require.GreaterOrEqual(t, x.offset, end)
		require.GreaterOrEqual(t, x.length, int64(0))
		end = x.offset + x.length
		require.LessOrEqual(t, end, e.size)
	}
	last := ""
	for _, c := range e.children {
		require.Equal(t, directory, e.kind)
		require.Greater(t, c.name, last)
		last = c.name
		checkTree(t, c, false)
	}
}

// FuzzStore goes back to points of a store that other programs have written, and forgets them.
// Nothing may change but the directory and the store. The fuzzer cannot guess checksums, so the
// heads are made of numbers.
func FuzzStore(f *testing.F) {
	tree, patch := seedTrees(f)
	n := uint64(len(tree))
	f.Add(append(tree, patch...), []byte("contents"), []byte{}, uint64(0), uint64(0), n,
		n, n+uint64(len(patch)), uint64(8), uint64(0))
	f.Add(tree, make([]byte, 100), make([]byte, 80), uint64(1), uint64(0), n, uint64(0), n,
		uint64(100), uint64(80))
	f.Fuzz(func(t *testing.T, trees, contents, index []byte, base, from, to, from2, to2, size,
		indexed uint64) {
		outer := t.TempDir()
		outside := filepath.Join(outer, "outside")
		dir := filepath.Join(outer, "dir")
		require.NoError(t, os.Mkdir(outside, 0o700))
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("a\n"), 0o600))
		before := described(t, outside)
		h, err := Open(dir, filepath.Join(outer, "history"), Limits{Entries: 1000,
			Bytes: 1 << 20})
		require.NoError(t, err)
		first, err := h.Save(t.Context()) // makes the store
		require.NoError(t, err)
		heads := []head{{id: 1, tree: from, trees: to, contents: size, index: indexed},
			{id: 2, base: base, tree: from2, trees: to2, contents: size, index: indexed}}
		var text []byte
		for _, hd := range heads {
			text = append(text, hd.encode()...)
		}
		for name, content := range map[string][]byte{headsFile: text, treesFile: trees,
			contentsFile: contents, indexFile: index} {
			require.NoError(t, os.WriteFile(filepath.Join(h.store, name), content, 0o600))
		}
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
		defer cancel()
		h.Points(ctx)
		h.Changes(ctx, first)
		h.Back(ctx, sandbox.Point{ID: 2})
		h.Forget(ctx, first)
		h.Save(ctx)
		h.Back(ctx, sandbox.Point{ID: 2})
		require.NoError(t, ctx.Err(), "it took a minute")
		requireSame(t, before, described(t, outside))
		left, err := os.ReadDir(outer)
		require.NoError(t, err)
		require.Len(t, left, 3)
	})
}
