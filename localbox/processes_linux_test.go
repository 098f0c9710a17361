package localbox

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A counted host counts the processes that it starts.
type counted struct {
	*host
	starts atomic.Int32
}

func (h *counted) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	h.starts.Add(1)
	return h.host.Start(ctx, p)
}

// A silent host does not implement hostapi.Processes. So the box starts a control shell, which
// answers.
type silent struct{ shellbox.Host }

// TestProcesses checks that a box knows what its commands wait for, and ends what it has started,
// whether its host or the control shell answers. If its host answers, the box starts no control
// shell.
func TestProcesses(t *testing.T) {
	t.Run("Host", func(t *testing.T) {
		h := &counted{host: &host{}}
		checkProcesses(t, h)
		require.EqualValues(t, 2, h.starts.Load(), "the sessions' shells")
	})
	t.Run("ControlShell", func(t *testing.T) {
		h := &counted{host: &host{}}
		checkProcesses(t, silent{h})
		require.EqualValues(t, 3, h.starts.Load(), "the sessions' shells and the control shell")
	})
}

func checkProcesses(t *testing.T, h shellbox.Host) {
	ctx := t.Context()
	box, err := shellbox.New(ctx, h, shellbox.Options{Grace: 300 * time.Millisecond,
		Dir: t.TempDir()})
	require.NoError(t, err)
	defer box.Close()

	for _, c := range []struct {
		command string
		awaits  sandbox.InputKind
	}{
		{"read -r x", sandbox.Line},
		{"stty -echo; head -n 1 >/dev/null; stty echo", sandbox.Secret},
		{"stty raw; head -n 1 >/dev/null; stty -raw", sandbox.Keys},
	} {
		r, err := box.Execute(ctx, c.command)
		require.NoError(t, err)
		require.Equal(t, sandbox.Waiting, r.State, c.command)
		require.Equal(t, c.awaits, r.Awaits, c.command)
		r, err = box.Input(ctx, "x\n")
		require.NoError(t, err)
		require.Equal(t, sandbox.Exited, r.State, c.command)
	}
	r, err := box.Execute(ctx, "trap '' INT TERM; sleep 1000; trap - INT TERM",
		sandbox.Timeout(100*time.Millisecond))
	require.ErrorIs(t, err, sandbox.ErrTimeout)
	require.False(t, r.Restarted)

	job, err := box.Background(ctx,
		`sh -c 'trap "exit 3" USR1; echo ready; while :; do sleep 0.05; done'`)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		log, _, err := job.Logs(ctx, 0)
		return err == nil && len(log) > 0
	}, testenv.Limit, 5*time.Millisecond)
	require.NoError(t, job.Signal(ctx, syscall.SIGUSR1))
	r, err = job.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 3, r.ExitCode)

	r, err = box.Execute(ctx, "setsid sh -c 'sleep 1000 & echo $!; wait' & read -r x; kill -0 $!")
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State)
	require.NoError(t, box.Close())
	require.NotEmpty(t, r.Output)
	require.Eventually(t, func() bool {
		return syscall.Kill(atoi(r.Output), 0) != nil
	}, testenv.Limit, 5*time.Millisecond)
}

// atoi returns the number of all digits in s.
func atoi(s string) (n int) {
	for _, c := range s {
		if '0' <= c && c <= '9' {
			n = 10*n + int(c-'0')
		}
	}
	return n
}
