package tempdir

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReap(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	mine, err := Make("box-")
	require.NoError(t, err)
	left, err := Make("box-")
	require.NoError(t, err)
	other, err := Make("other-")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(left.Path, "file"), nil, 0o400))
	require.NoError(t, os.Chmod(left.Path, 0o500))
	if left.lock == nil {
		t.Skip("no locks here")
	}
	require.NoError(t, left.lock.Close()) // as the kernel does when the owner ends
	require.NoError(t, other.lock.Close())
	if os.Getuid() == 0 {
		foreign := filepath.Join(os.TempDir(), "box-foreign")
		require.NoError(t, os.Mkdir(foreign, 0o777))
		require.NoError(t, os.Chown(foreign, 12345, 12345))
		defer os.Remove(foreign)
	}
	require.NoError(t, os.Symlink(other.Path, filepath.Join(os.TempDir(), "box-link")))

	trouble := errors.New("not yet")
	n, err := Reap("box-", func(path string) error {
		require.Equal(t, left.Path, path)
		return trouble
	})
	require.Zero(t, n)
	require.ErrorIs(t, err, trouble)
	n, err = Reap("box-", func(string) error { return nil })
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoDirExists(t, left.Path)
	require.DirExists(t, mine.Path)
	require.DirExists(t, other.Path)
	require.NoError(t, mine.Remove())
	require.NoDirExists(t, mine.Path)
}

// Reap does not remove a directory that is being made.
func TestReapWhileMade(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	done := make(chan struct{})
	var reaping sync.WaitGroup
	reaping.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				Reap("box-", func(string) error { return nil })
			}
		}
	})
	for range 300 {
		d, err := Make("box-")
		require.NoError(t, err)
		require.DirExists(t, d.Path)
		require.NoError(t, d.Remove())
	}
	close(done)
	reaping.Wait()
}
