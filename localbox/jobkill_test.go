package localbox_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/localbox"
)

// TestJobKillGivenUp checks that a job ends even if the ctx of its Kill ends first, and that no
// goroutine of Kill outlives the box's Close.
func TestJobKillGivenUp(t *testing.T) {
	const stubborn = `sh -c 'trap "" TERM HUP; echo begun; while :; do sleep 0.1; done'`
	giveUpKill := func(grace time.Duration) (*localbox.LocalBox, func() bool) {
		box := open(t, localbox.Config{Dir: t.TempDir(), Grace: grace})
		j, err := box.Background(t.Context(), stubborn)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			data, _, _ := j.Logs(t.Context(), 0)
			return len(data) > 0
		}, testenv.Limit, time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := j.Kill(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Kill: %v", err)
		}
		return box, func() bool {
			select {
			case <-j.Done():
				return true
			default:
				return false
			}
		}
	}
	_, done := giveUpKill(200 * time.Millisecond)
	require.Eventually(t, done, testenv.Limit, time.Millisecond)

	box, _ := giveUpKill(time.Minute)
	require.NoError(t, box.Close())
	stacks := make([]byte, 1<<20)
	if stacks := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(stacks,
		"shellbox.(*job).Kill.") {
		t.Errorf("Kill goes on after Close:\n%s", stacks)
	}
}
