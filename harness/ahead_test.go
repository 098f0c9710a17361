package harness

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// uniqueID returns an ID that no other test process has, on the same engine.
func uniqueID(name string) string { return fmt.Sprint(name, "-", os.Getpid()) }

// boxesOf returns the ids of a task's boxes.
func boxesOf(t *testing.T, task string) (ids []string) {
	boxes, err := sshbox.Engine{}.List(t.Context())
	assert.NoError(t, err)
	for _, b := range boxes {
		if b.Labels[taskLabel] == task {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// TestAhead checks how many boxes of the next tasks are made while the first task runs.
func TestAhead(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	for ahead, want := range map[int][]int{-1: {1, 0}, 0: {1, 1, 0}, 2: {1, 1, 1, 0}} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			t.Parallel()
			var tasks []Task
			for i := range want {
				tasks = append(tasks, small(uniqueID(fmt.Sprintf("ahead%d-%d", ahead, i))))
			}
			s, err := Run(t.Context(), Config{Tasks: tasks, Dir: t.TempDir(), Name: "agent",
				Parallel: 1, Ahead: ahead, Agent: func(ctx context.Context, trial *Trial) error {
					if trial.Task.ID == tasks[0].ID {
						for i, n := range want {
							assert.Eventually(t, func() bool {
								return len(boxesOf(t, tasks[i].ID)) == n
							}, testenv.Limit, 10*time.Millisecond, "boxes of task %d", i)
						}
					}
					return Oracle(ctx, trial)
				}})
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%d pass of %[1]d tasks", len(want)), s.Text())
		})
	}
}

// TestAheadDies removes a box before its task begins, which costs an attempt.
func TestAheadDies(t *testing.T) {
	t.Parallel()
	engine := dockertest.Engine(t, dockertest.Busybox)
	tasks := []Task{small(uniqueID("dies-first")), small(uniqueID("dies-second"))}
	s, err := Run(t.Context(), Config{Tasks: tasks, Dir: t.TempDir(), Name: "agent", Parallel: 1,
		Agent: func(ctx context.Context, trial *Trial) error {
			if trial.Task.ID == tasks[0].ID {
				var ids []string
				if assert.Eventually(t, func() bool {
					ids = boxesOf(t, tasks[1].ID)
					return len(ids) == 1
				}, testenv.Limit, 10*time.Millisecond) {
					_, err := engine.ContainerRemove(ctx, ids[0],
						client.ContainerRemoveOptions{Force: true})
					assert.NoError(t, err)
				}
			}
			return Oracle(ctx, trial)
		}})
	require.NoError(t, err)
	require.Equal(t, "2 pass of 2 tasks", s.Text())
	require.Equal(t, 2, s.Results[1].Attempts)
}

// BenchmarkAhead runs tasks that wait, as for a model, and tasks that compute. Their boxes are made
// when the task begins (0) or ahead (1, 2). An op is a task, and ms/box is how long it waits for
// its box.
func BenchmarkAhead(b *testing.B) {
	dockertest.Engine(b, dockertest.Busybox)
	for name, command := range map[string]string{"waits": "sleep 1",
		"computes": "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"} {
		for _, ahead := range []int{-1, 1, 2} {
			b.Run(fmt.Sprintf("%s/%d", name, max(ahead, 0)), func(b *testing.B) {
				var tasks []Task
				for i := range b.N {
					task := small(fmt.Sprint(i))
					task.Solution.Command += "; " + command
					tasks = append(tasks, task)
				}
				s, err := Run(b.Context(), Config{Tasks: tasks, Dir: b.TempDir(), Name: "agent",
					Agent: Oracle, Parallel: 2, Ahead: ahead})
				require.NoError(b, err)
				var waited float64
				for _, r := range s.Results {
					require.Equal(b, Pass, r.Status, r.Reason)
					waited += r.Times.Box
				}
				b.ReportMetric(1000*waited/float64(b.N), "ms/box")
			})
		}
	}
}
