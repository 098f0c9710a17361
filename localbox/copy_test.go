package localbox_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// TestCopyEndsWithItsContext checks that a long copy ends when its context or the box ends, and
// leaves nothing behind.
func TestCopyEndsWithItsContext(t *testing.T) {
	for _, closed := range []bool{false, true} {
		dir := t.TempDir()
		huge, err := os.Create(dir + "/huge")
		require.NoError(t, err)
		// An archive describes at most 10,000 holes. Behind them, zeros are copied.
		for i := range int64(10_001) {
			_, err := huge.WriteAt([]byte("x"), i<<17)
			require.NoError(t, err)
		}
		require.NoError(t, huge.Truncate(1<<40))
		require.NoError(t, huge.Close())
		require.NoError(t, os.Mkdir(dir+"/to", 0o755))
		for name, copying := range map[string]func(sandbox.Sandbox, context.Context) error{
			"To": func(b sandbox.Sandbox, ctx context.Context) error {
				return b.CopyTo(ctx, dir+"/huge", dir+"/to")
			},
			"From": func(b sandbox.Sandbox, ctx context.Context) error {
				return b.CopyFrom(ctx, dir+"/huge", dir+"/to")
			},
		} {
			box := open(t, localbox.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- copying(box, ctx) }()
			require.Eventually(t, func() bool { // the copy is under way
				entries, err := os.ReadDir(dir + "/to")
				return err == nil && len(entries) == 1
			}, testenv.Limit, time.Millisecond)
			want := context.Canceled
			if closed {
				want = sandbox.ErrClosed
				go box.Close()
			} else {
				cancel()
			}
			select {
			case err := <-done:
				require.ErrorIs(t, err, want, name)
			case <-time.After(testenv.Limit):
				t.Fatal(name, "goes on")
			}
			cancel()
			left, err := os.ReadDir(dir + "/to")
			require.NoError(t, err)
			require.Empty(t, left)
		}
	}
}

func TestCopyToHome(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/f", []byte("F"), 0o644))
	box := open(t, localbox.Config{Env: []string{"HOME=" + home}})
	require.NoError(t, box.CopyTo(t.Context(), dir+"/f", "~/sub"))
	require.FileExists(t, home+"/sub")
	require.NoError(t, box.CopyFrom(t.Context(), "~", dir+"/back"))
	require.FileExists(t, dir+"/back/sub")
}

// TestCopyIntoItself checks that a copy of a directory into itself does not contain the copy.
func TestCopyIntoItself(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/d", 0o755))
	require.NoError(t, os.WriteFile(dir+"/d/f", make([]byte, 1<<20), 0o644))
	box := open(t, localbox.Config{})
	require.NoError(t, box.CopyTo(t.Context(), dir+"/d", dir+"/d"))
	require.FileExists(t, dir+"/d/d/f")
	require.NoDirExists(t, dir+"/d/d/d")
}
