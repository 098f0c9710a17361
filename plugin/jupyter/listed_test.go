package jupyter_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/stretchr/testify/require"
)

// testListed checks which kernels Kernels has: those that run or have died, and not those that were
// stopped.
func testListed(t *testing.T, b boxtest.Box, kernel string) {
	dir := func() (dir string, listed bool) {
		t.Helper()
		all, err := jupyter.Kernels(limit(t), b)
		require.NoError(t, err)
		require.True(t, slices.IsSortedFunc(all, func(a, b jupyter.Kernel) int {
			return slices.Compare([]byte(a.Name), []byte(b.Name))
		}))
		i := slices.IndexFunc(all, func(k jupyter.Kernel) bool { return k.Name == kernel })
		if i < 0 {
			return "", false
		}
		return all[i].Dir, true
	}
	_, listed := dir()
	require.False(t, listed)
	c := connectTo(t, b, jupyter.Config{Kernel: kernel, Dir: "/usr"})
	run(t, c, "import os; os.chdir('/')")
	in := func(want string) {
		t.Helper()
		got, listed := dir()
		require.True(t, listed)
		require.Equal(t, want, got)
	}
	in("/usr")
	_, err := c.Run(limit(t), "os._exit(1)")
	require.ErrorIs(t, err, jupyter.ErrDead)
	in("/usr")
	require.NoError(t, c.Stop(limit(t))) // it has died before
	_, listed = dir()
	require.False(t, listed)
	require.NoError(t, c.Restart(limit(t)))
	in("/usr")
	require.NoError(t, c.Stop(limit(t)))
	_, listed = dir()
	require.False(t, listed)
}

// testSilent checks that a silent cell has no number and no value, and that it can be interrupted.
func testSilent(t *testing.T, b boxtest.Box, kernel string) {
	c := connect(t, b, kernel)
	first := run(t, c, "1").ExecutionCount
	r := run(t, c, "x = 2; x", jupyter.Silent())
	require.Empty(t, r.Outputs)
	r = run(t, c, "x, In[-1]")
	require.Equal(t, "(2, 'x, In[-1]')", r.Text)
	require.Equal(t, first+1, r.ExecutionCount)
	r, err := c.Run(limit(t), "1 / 0", jupyter.Silent())
	require.NoError(t, err)
	require.Equal(t, "ZeroDivisionError", r.Error.Name)

	ctx, cancel := context.WithCancel(limit(t))
	defer cancel()
	r, err = c.Run(ctx, "import time\nprint('up', flush=True)\ntime.sleep(3600)", jupyter.Silent(),
		when("up", cancel))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, jupyter.ErrQueued)
	require.NotNil(t, r)
	require.Equal(t, "KeyboardInterrupt", r.Error.Name)
}
