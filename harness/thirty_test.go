package harness

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// thirty returns the tasks of testdata.
func thirty(t *testing.T) []Task {
	t.Helper()
	dockertest.Engine(t, dockertest.Image)
	tasks, err := Read(filepath.Join("testdata", "tasks.jsonl"))
	require.NoError(t, err)
	require.Len(t, tasks, 30)
	return tasks
}

// runTasks runs tasks with an agent, and returns the results by task.
func runTasks(t *testing.T, tasks []Task, agent Agent) map[string]testResult {
	t.Helper()
	dir := t.TempDir()
	s, err := Run(t.Context(), Config{Tasks: tasks, Agent: agent, Name: "agent", Dir: dir,
		Parallel: 4, Memory: 1 << 30})
	require.NoError(t, err)
	require.Len(t, s.Results, len(tasks))
	results := map[string]testResult{}
	for _, r := range s.Results {
		results[r.Task] = testResult{r, dir}
	}
	return results
}

// TestPrograms takes one bug of each of two programs. The program's tests find it, and the
// reference solution repairs it.
func TestPrograms(t *testing.T) {
	t.Parallel()
	var some []Task
	seen := map[string]bool{}
	for _, task := range thirty(t) {
		if program, _, _ := strings.Cut(task.ID, "/"); !seen[program] && len(seen) < 2 {
			seen[program] = true
			some = append(some, task)
		}
	}
	require.Len(t, some, 2)
	judgedSoundly(t, some, some)
}

func TestThirtyPrograms(t *testing.T) {
	testenv.NeedsAll(t, "forty containers, and nightly sixty; TestPrograms has a task of two of "+
		"the programs")
	tasks, undone := thirty(t), []Task(nil)
	for i, task := range tasks {
		if i%3 == 0 || testenv.Full() {
			undone = append(undone, task)
		}
	}
	judgedSoundly(t, tasks, undone)
}

// judgedSoundly checks that Oracle passes all of tasks, and Nop none of undone.
func judgedSoundly(t *testing.T, tasks, undone []Task) {
	for _, r := range runTasks(t, tasks, Oracle) {
		require.Equal(t, Pass, r.Status, "%+v\n%s", r, logOf(t, r))
	}
	for _, r := range runTasks(t, undone, Nop) {
		require.Equal(t, Fail, r.Status, "%+v\n%s", r, logOf(t, r))
		require.Contains(t, logOf(t, r), "FAILED (") // the program's own tests say so
	}
}

// TestThirtyAgents runs all kinds of agents at once, each on some of the thirty tasks. None spoils
// the results of another.
func TestThirtyAgents(t *testing.T) {
	testenv.NeedsAll(t, "thirty containers, some until their time is over; TestJudge has the "+
		"agents, with a small task")
	kinds := []struct {
		name   string
		agent  Agent
		status Status
	}{
		{"right", Oracle, Pass},
		// replaces the tests too
		{"wrong", typing(`for f in *.py */*.py; do echo "raise SystemExit(0)" >"$f"; done`), Fail},
		{"hanging", typing("python3 -c 'import time; time.sleep(1000)'"), Timeout},
		{"asking", typing("rm -ri /work"), Stuck},
		{"right again", Oracle, Pass},
		{"crashing", func(context.Context, *Trial) error {
			panic("no idea")
		}, Error},
		{"failing", func(context.Context, *Trial) error {
			return errors.New("no idea")
		}, Error},
		{"forking", typing("b() { b | b & }; b"), Fail},
		{"eating memory", typing(`python3 -c "x = bytearray(1 << 30)"`), OOM},
		{"ending the box", typing("kill -TERM 1; sleep 100"), Fail},
	}
	tasks := thirty(t)
	of := map[string]int{}
	for i := range tasks {
		of[tasks[i].ID] = i % len(kinds)
		if kinds[of[tasks[i].ID]].status == Timeout {
			tasks[i].Limits.Time = 10 * time.Second
		}
	}
	var mu sync.Mutex
	calls := map[string]int{}
	results := runTasks(t, tasks, func(ctx context.Context, trial *Trial) error {
		mu.Lock()
		calls[trial.Task.ID]++
		mu.Unlock()
		return kinds[of[trial.Task.ID]].agent(ctx, trial)
	})
	for _, task := range tasks {
		kind, r := kinds[of[task.ID]], results[task.ID]
		require.Equal(t, kind.status, r.Status, "%s: %+v\n%s", kind.name, r, logOf(t, r))
		require.Equal(t, 1, calls[task.ID], kind.name)
	}
}
