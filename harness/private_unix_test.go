//go:build unix

package harness

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a directory of results holds is the user's alone, whatever the umask, and whatever it was.
func TestPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "a", "results")
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o700))
	for range 2 {
		results, err := openResults(dir, "agent")
		require.NoError(t, err)
		r := &runner{cfg: Config{Dir: dir}, results: results}
		s := r.prepare(t.Context(), Task{ID: "a/b"}) // without an engine
		cast, err := createBounded(filepath.Join(dir, s.dir, "recording.cast"), 1)
		require.NoError(t, err)
		require.NoError(t, cast.Close())
		require.NoError(t, s.close())
		require.NoError(t, (&Summary{}).writeReport(dir))
		require.NoError(t, results.close())
		seen := 0
		require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := e.Info()
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, "%s: %v", path, info.Mode())
			seen++
			if !e.IsDir() { // as an older version made it
				require.NoError(t, os.Chmod(path, 0o666))
			}
			return nil
		}))
		require.Equal(t, 10, seen)
	}
}
