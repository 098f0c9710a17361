package harness

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// TestNumbers checks which scores and counts a Trial takes.
func TestNumbers(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	trial := &Trial{Log: &log}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { trial.Count("tokens", 3) })
	}
	all.Wait()
	trial.Score("quality", 0.25)
	trial.Score("quality", 0.5)
	for says, name := range map[string]string{
		"the score \"\" is left out: write a name of":       "",
		"the score \"\\x1b[2J\" is left out: write a name":  "\x1b[2J",
		"xxxx\" is left out: write a name of 1 to 64 bytes": strings.Repeat("x", 65),
	} {
		trial.Score(name, 1)
		require.Contains(t, log.String(), says)
	}
	trial.Score("quality", math.NaN())
	trial.Count("tokens", math.Inf(1))
	require.Contains(t, log.String(), `the count "tokens" is left out: it is not finite`)
	for i := range 20 {
		trial.Count(fmt.Sprint("kind ", i), 1)
	}
	require.Contains(t, log.String(), `the count "kind 15" is left out: there are 16 others`)
	require.Equal(t, map[string]float64{"quality": 0.5}, trial.Scores())
	require.Len(t, trial.Counts(), 16)
	require.InDelta(t, 300, trial.Counts()["tokens"], 0)
	(&Trial{}).Score("", 1) // without a log
}

// TestTrial checks what an agent gets, and that its numbers are in the result.
func TestTrial(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	task := small("task")
	task.Tags = []string{"files", "easy"}
	r := runOne(t, task, func(ctx context.Context, trial *Trial) error {
		fmt.Fprintln(trial.Log, "sample", trial.Sample, "of", trial.Task.ID)
		trial.Score("quality", 0.5)
		trial.Count("tokens", 100)
		trial.Count("tokens", 20)
		return Oracle(ctx, trial)
	}, Config{})
	require.Equal(t, Pass, r.Status, "%+v", r)
	require.Equal(t, 1, r.Sample)
	require.Equal(t, "tasks/task", r.Dir)
	require.Equal(t, task.Tags, r.Tags)
	require.Equal(t, map[string]float64{"quality": 0.5}, r.Scores)
	require.Equal(t, map[string]float64{"tokens": 120}, r.Counts)
	require.Contains(t, logOf(t, r), "sample 1 of task\n")
}
