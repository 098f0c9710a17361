package localbox

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A killing host kills shells as soon as they have started.
type killing struct {
	*host
	left atomic.Int32 // how many shells it is still to kill
}

func (k *killing) Look(ctx context.Context, p hostapi.Process) (proc.Look, error) {
	if k.left.Add(-1) >= 0 {
		syscall.Kill(p.PID(), syscall.SIGKILL)
		// Wait until the box has noticed the end: Resize fails then.
		for end := time.Now().Add(testenv.Limit); p.(shellbox.Process).Resize(24, 80) == nil &&
			time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	return k.host.Look(ctx, p)
}

// TestShellKilledAtItsStart checks that a shell that is killed at its start is started again, for a
// session and for a job.
func TestShellKilledAtItsStart(t *testing.T) {
	h := &killing{host: &host{}}
	box, err := shellbox.New(t.Context(), h, shellbox.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer box.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()

	h.left.Store(1)
	s, err := box.Open(ctx)
	require.NoError(t, err)
	r, err := s.Execute(ctx, "echo there")
	require.NoError(t, err)
	require.Equal(t, "there\n", r.Output)

	h.left.Store(1)
	j, err := box.Background(ctx, "echo done")
	require.NoError(t, err)
	r, err = j.Wait(ctx)
	require.NoError(t, err)
	if r.ExitCode != 137 { // 137: the job's own shell was killed
		require.Equal(t, "done\n", r.Output)
	}

	h.left.Store(1000)
	if s, err = box.Open(ctx); err == nil { // the box has not noticed the last shell's end yet
		_, err = s.Execute(ctx, "true")
		require.True(t, err == nil || errors.Is(err, sandbox.ErrLost), "%v", err)
	} else {
		require.ErrorContains(t, err, "it ended with status 137 before its first prompt")
	}
	h.left.Store(0)
	r, err = box.Execute(ctx, "echo there", sandbox.Timeout(10*time.Second))
	require.NoError(t, err)
	require.Equal(t, "there\n", r.Output)
}
