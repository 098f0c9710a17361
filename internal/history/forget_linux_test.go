package history

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// onDisk returns how many bytes a file of the store takes on the disk.
func onDisk(t *testing.T, h *History, name string) int64 {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat(filepath.Join(h.store, name), &st))
	return st.Blocks * 512
}

// TestForget forgets points. What only they have is freed, and is saved anew when it comes again.
func TestForget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, dir)
	save := func(script string) sandbox.Point {
		t.Helper()
		sh(t, dir, script)
		p, err := h.Save(t.Context())
		require.NoError(t, err)
		return p
	}
	back := func(p sandbox.Point, want map[string]string) (saved sandbox.Point) {
		t.Helper()
		saved, err := h.Back(t.Context(), p)
		require.NoError(t, err)
		requireSame(t, want, described(t, dir))
		return saved
	}
	first := save("seq 200000 >f; cp f f2; seq 100 >small; for i in $(seq 500); do : >e$i; done")
	withFirst := described(t, dir)
	second := save("rm f f2; seq 300000 >g")
	withSecond := described(t, dir)
	third := save("rm g; echo 3 >small")
	withThird := described(t, dir)
	before, trees := onDisk(t, h, contentsFile), onDisk(t, h, treesFile)
	require.Greater(t, before, int64(3_000_000))

	require.ErrorIs(t, h.Forget(t.Context(), second, sandbox.Point{ID: 9}), fs.ErrNotExist)
	require.NoError(t, h.Forget(t.Context(), second))
	require.Less(t, onDisk(t, h, contentsFile), before-1_900_000)
	require.NoError(t, h.Forget(t.Context(), first))
	require.Less(t, onDisk(t, h, contentsFile), int64(64<<10))
	require.LessOrEqual(t, onDisk(t, h, treesFile), trees)
	all, err := h.Points(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	for _, p := range []sandbox.Point{first, second} {
		_, err = h.Back(t.Context(), p)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = h.Changes(t.Context(), p)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorIs(t, h.Forget(t.Context(), p), fs.ErrNotExist)
	}

	// The same contents come again.
	fourth := save("seq 200000 >f; seq 300000 >g")
	withFourth := described(t, dir)
	require.Equal(t, 4, fourth.ID)
	require.Zero(t, back(third, withThird))
	require.Zero(t, back(fourth, withFourth))

	// The state that the last point had is not lost, whoever has forgotten that point.
	require.NoError(t, h.Forget(t.Context(), fourth))
	require.Equal(t, 5, back(third, withThird).ID)
	require.Zero(t, back(sandbox.Point{ID: 5}, withFourth))
	require.NoError(t, h.Forget(t.Context(), third, sandbox.Point{ID: 5}))
	all, err = h.Points(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
	sixth := save("echo 6 >six")
	require.Equal(t, 6, sixth.ID)
	withSixth := described(t, dir)
	sh(t, dir, "rm -r *")
	back(sixth, withSixth)
	require.NotEqual(t, withFirst, withSecond)

	left, err := os.ReadDir(h.store)
	require.NoError(t, err)
	require.Len(t, left, 5, "the lock and four files")
}
