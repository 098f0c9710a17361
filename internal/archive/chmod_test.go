//go:build linux

package archive

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/test/seccomptest"
)

// Modes are kept even if the runtime's filter refuses fchmodat2.
func TestChmodRefused(t *testing.T) {
	dir := build(t, t.TempDir(), "x/ro/f=1", "x/f=2", "old/")
	require.NoError(t, os.Chmod(dir+"/x/f", 0o640))
	require.NoError(t, os.Chmod(dir+"/x/ro", 0o500))
	require.NoError(t, os.Chmod(dir+"/x", 0o750))
	want := snapshot(t, dir+"/x")
	archive := packed(t, dir+"/x")
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		done <- func() error {
			if err := seccomptest.Refuse(unix.EPERM, false, unix.SYS_FCHMODAT2); err != nil {
				return err
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				return err
			}
			defer root.Close()
			if err := root.Chmod("old", 0o700); !errors.Is(err, unix.EPERM) {
				return errors.New("nothing refuses fchmodat2")
			}
			for range 2 { // the second copy is merged into the first
				if err := Unpack(t.Context(), bytes.NewReader(archive), dir+"/old",
					Options{}); err != nil {
					return err
				}
			}
			if err := chmod(root, "old", 0o711); err != nil {
				return err
			}
			return chmod(root, "none", 0o711)
		}()
	}()
	require.ErrorIs(t, <-done, unix.ENOENT)
	require.Equal(t, want, snapshot(t, dir+"/old/x"))
	info, err := os.Stat(dir + "/old")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o711), info.Mode().Perm())
	info, err = os.Stat(dir + "/old/x")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode().Perm())
}
