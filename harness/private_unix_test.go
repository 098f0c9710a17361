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

// TestPrivate checks that only the user can read a directory of results, whatever the umask is, and
// whatever the modes were.
func TestPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "a", "results")
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o700))
	for range 2 {
		results, err := openResults(dir, "agent")
		require.NoError(t, err)
		r := &runner{cfg: Config{Dir: dir}, results: results}
		s := r.prepare(t.Context(), Task{ID: "a/b"}, 1) // without an engine
		cast, err := createBounded(filepath.Join(dir, s.dir, "recording.cast"), 1)
		require.NoError(t, err)
		require.NoError(t, cast.Close())
		require.NoError(t, s.close())
		task, result := Task{ID: "a/b"}, Result{Task: "a/b", Sample: 1, Dir: "tasks/a/b"}
		report := newReport(dir, "agent", []reportRow{{Result: result}}, nil)
		report.taskBegan(&task, result)
		require.NoError(t, report.end(0))
		require.NoError(t, results.close())
		seen := 0
		require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := e.Info()
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, "%s: %v", path, info.Mode())
			seen++
			if !e.IsDir() { // the next pass finds files that others can read
				require.NoError(t, os.Chmod(path, 0o666))
			}
			return nil
		}))
		require.Equal(t, 18, seen)
	}
}
