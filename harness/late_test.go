package harness

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// A closing counts the calls of Close.
type closing struct {
	sandbox.Sandbox
	calls int
}

func (c *closing) Close() error {
	c.calls++
	return nil
}

// TestLateAgent has an agent that returns long after its time. Its box is closed, and the log and
// the progress say what the run waits for.
func TestLateAgent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log.txt")
	synctest.Test(t, func(t *testing.T) {
		log, err := createLog(path)
		require.NoError(t, err)
		var shown bytes.Buffer
		box := &closing{}
		run := &runner{progress: newProgress(&shown, 1, 0)}
		run.cfg.Agent = func(context.Context, *Trial) error {
			time.Sleep(time.Hour)
			return nil
		}
		a := &attempt{run: run, log: log, task: Task{ID: "task"},
			trial: &Trial{Box: box, Sample: 2}}
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
		defer cancel()
		require.NoError(t, a.callAgent(ctx))
		require.NoError(t, log.Close())
		require.Equal(t, 1, box.calls)
		require.Equal(t, "task@2: its time is over, and its agent does not return: it is waited "+
			"for\n", shown.String())
	})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "--- the agent has not returned 20s after its time was over")
}

// TestRecordedClosedTwice checks that the second Close of an agent's box is no error.
func TestRecordedClosedTwice(t *testing.T) {
	t.Parallel()
	local, err := localbox.New(t.Context(), localbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	box, err := (&attempt{cast: filepath.Join(t.TempDir(), "cast")}).record(local)
	require.NoError(t, err)
	require.NoError(t, box.Close())
	require.NoError(t, box.Close())
}
