package history

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// manyFiles makes 20,000 files of 2.6 KB in 1,000 directories: 52 MB.
func manyFiles(b *testing.B, dir string) {
	data := make([]byte, 2600)
	for i := range 1000 {
		d := filepath.Join(dir, fmt.Sprintf("d%d", i/100), fmt.Sprintf("e%d", i%100))
		require.NoError(b, os.MkdirAll(d, 0o755))
		for k := range 20 {
			copy(data, fmt.Sprint(i, k))
			require.NoError(b, os.WriteFile(filepath.Join(d, fmt.Sprintf("file%d.go", k)), data,
				0o644))
		}
	}
}

// change changes ten files.
func change(b *testing.B, dir string, n int) {
	for i := range 10 {
		name := filepath.Join(dir, fmt.Sprintf("d%d/e%d/file7.go", i, n%100))
		require.NoError(b, os.WriteFile(name, []byte(fmt.Sprint("changed ", n, i)), 0o644))
	}
}

// BenchmarkFirstSave and the others stand beside tar and cp, which have no states to go back to.
func BenchmarkFirstSave(b *testing.B) {
	dir := b.TempDir()
	manyFiles(b, dir)
	b.Run("Save", func(b *testing.B) {
		for range b.N {
			_, err := open(b, dir).Save(b.Context())
			require.NoError(b, err)
		}
	})
	b.Run("tar", func(b *testing.B) {
		for range b.N {
			require.NoError(b, exec.Command("tar", "-C", dir, "-cf",
				filepath.Join(b.TempDir(), "tar"), ".").Run())
		}
	})
	b.Run("cp", func(b *testing.B) {
		for range b.N {
			require.NoError(b, exec.Command("cp", "-a", dir, filepath.Join(b.TempDir(), "c")).Run())
		}
	})
}

// BenchmarkTenChanges saves, compares, and goes back over ten changes among 20,000 files.
func BenchmarkTenChanges(b *testing.B) {
	dir := b.TempDir()
	manyFiles(b, dir)
	h := open(b, dir)
	first, err := h.Save(b.Context())
	require.NoError(b, err)
	n := 0
	b.Run("Save", func(b *testing.B) {
		least := time.Hour
		for range b.N {
			b.StopTimer()
			n++
			change(b, dir, n)
			b.StartTimer()
			began := time.Now()
			_, err := h.Save(b.Context())
			least = min(least, time.Since(began))
			require.NoError(b, err)
		}
		b.ReportMetric(least.Seconds()*1000, "ms-least") // on a machine that others use
	})
	b.Run("Changes", func(b *testing.B) {
		for range b.N {
			_, err := h.Changes(b.Context(), first)
			require.NoError(b, err)
		}
	})
	b.Run("Back", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			n++
			change(b, dir, n)
			b.StartTimer()
			_, err := h.Back(b.Context(), first)
			require.NoError(b, err)
		}
	})
}
