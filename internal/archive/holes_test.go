//go:build linux

package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHolesWithoutSystem packs a file with holes where the system does not know the holes, as in
// FUSE: they are found in its content.
func TestHolesWithoutSystem(t *testing.T) {
	const size = 64 << 20
	dir := build(t, t.TempDir(), "x=")
	f, err := os.OpenFile(dir+"/x", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	for _, at := range []int64{0, 100_000, 33 << 20, size - 4} {
		_, err := f.WriteAt([]byte("data"), at)
		require.NoError(t, err)
	}
	info, err := f.Stat()
	require.NoError(t, err)
	if stored, ok := allocated(info); !ok || stored >= size {
		t.Skip("the file system has no holes")
	}
	pack := func(ctx context.Context, w io.Writer) error {
		p := newPacker(w)
		p.sparse = true
		p.extents = func(*os.File, fs.FileInfo) []extent { return nil }
		return p.packAll(ctx, dir+"/x", "x", "")
	}
	var archive bytes.Buffer
	require.NoError(t, pack(t.Context(), &archive))
	require.Less(t, archive.Len(), 64<<10)
	to := t.TempDir() + "/x"
	require.NoError(t, Unpack(t.Context(), &archive, to, Options{}))
	require.Equal(t, content(t, dir+"/x"), content(t, to))

	cause := errors.New("nobody waits")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	require.ErrorIs(t, pack(ctx, io.Discard), cause)
}

// content returns a file's content, in a form that a failed test can show.
func content(t *testing.T, name string) map[int]string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	found := map[int]string{len(b): "end"}
	for at := 0; at < len(b); at += 1 << 10 {
		if piece := b[at:min(at+1<<10, len(b))]; !bytes.Equal(piece, zeros[:len(piece)]) {
			found[at] = string(bytes.Trim(piece, "\x00"))
		}
	}
	return found
}

func TestFindData(t *testing.T) {
	const piece = holePiece
	text := func(form string) string { // x is a piece of data, - a hole
		return strings.NewReplacer("x", strings.Repeat("x", piece), "-",
			strings.Repeat("\x00", piece)).Replace(form)
	}
	many := strings.Repeat("x-", maxExtents)
	for _, c := range []struct {
		form string
		most int64 // in pieces
		want []extent
	}{
		{"xx", 9, nil}, {"--", 9, []extent{}}, {"", 9, nil},
		{"-x", 9, []extent{{piece, piece}}}, {"x-", 9, []extent{{0, piece}}},
		{"xx--xxx-x", 9, []extent{{0, 2 * piece}, {4 * piece, 3 * piece}, {8 * piece, piece}}},
		{"xx-xx", 4, []extent{{0, 2 * piece}, {3 * piece, 2 * piece}}},
		{"xx-xx", 3, nil}, // it is compressed
		{strings.Repeat("-", 40) + "x" + strings.Repeat("-", 40), 1, []extent{{40 * piece, piece}}},
		{"-end", 9, []extent{{piece, 3}}},
	} {
		all := text(c.form)
		got, err := findData(t.Context(), strings.NewReader(all), int64(len(all)), c.most*piece,
			make([]byte, bufferSize))
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.form)
	}
	all := text(many)
	got, err := findData(t.Context(), strings.NewReader(all), int64(len(all)), maxExtents*piece,
		make([]byte, bufferSize))
	require.NoError(t, err)
	require.Len(t, got, maxExtents)
	require.Equal(t, extent{2 * (maxExtents - 1) * piece, 2 * piece}, got[maxExtents-1])
	_, err = findData(t.Context(), strings.NewReader("short"), piece, piece,
		make([]byte, bufferSize))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
