package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// TestPassAt compares the estimates with all choices of k of n results.
func TestPassAt(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 8; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				choices, hits := 0, 0
				for set := range 1 << n { // results 0 to c-1 have passed
					size, hit := 0, false
					for i := range n {
						if set>>i&1 == 1 {
							size++
							hit = hit || i < c
						}
					}
					if size == k {
						choices++
						if hit {
							hits++
						}
					}
				}
				require.InDelta(t, float64(hits)/float64(choices), passAt(n, c, k), 1e-12,
					"n %d, c %d, k %d", n, c, k)
			}
		}
	}
	require.InDelta(t, 1, passAt(2000, 1999, 1000), 1e-12)
	require.InDelta(t, 0.5, passAt(2000, 1, 1000), 1e-12)

	s := &Summary{}
	add := func(task string, statuses ...Status) {
		for i, status := range statuses {
			s.Results = append(s.Results, Result{Task: task, Sample: i + 1, Status: status})
		}
	}
	require.Equal(t, "unknown", s.PassAt(1).String())
	add("a", Pass, Fail, Fail, Timeout)
	require.Equal(t, "0.25", s.PassAt(1).String())
	add("b", Pass, Pass, Pass, Pass, Lost)
	add("c", Fail, Stuck, OOM, Error)
	add("broken", Broken, Broken, Broken, Broken)
	add("short", Pass, Lost)
	require.Equal(t, Rate{Value: 0.5625, Error: s.PassAt(1).Error, Tasks: 4}, s.PassAt(1))
	require.InDelta(t, 0.2577, s.PassAt(1).Error, 1e-4) // sqrt(0.265625/4): of 1/4, 1, 0, 1
	two := s.PassAt(2)
	require.Equal(t, 3, two.Tasks)
	require.InDelta(t, 0.5, two.Value, 1e-12) // of 1/2, 1, 0
	require.Equal(t, "0.50 ± 0.29", two.String())
	require.Equal(t, "unknown", s.PassAt(5).String())
	require.Equal(t, "unknown", s.PassAt(0).String())
}

// TestSamples runs samples of a task with points and of one with a reference solution, which runs
// once. Then it raises their number, and changes a task.
func TestSamples(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	points, like := small("points"), small("like")
	points.Collect = []string{"made"}
	points.Check = Check{Points: []string{"-"}, Pass: 0.5,
		Script: Script{Command: "cat made/file"}}
	like.Check = Check{Like: []string{"made"}}
	dir := t.TempDir()
	var mu sync.Mutex
	run := func(samples int) (ran []string, s *Summary) {
		s, err := Run(t.Context(), Config{
			Tasks: []Task{points, like}, Name: "agent", Dir: dir, Samples: samples, Parallel: 2,
			Agent: func(ctx context.Context, trial *Trial) error {
				mu.Lock()
				ran = append(ran, fmt.Sprintf("%s %d", trial.Task.ID, trial.Sample))
				mu.Unlock()
				if trial.Task.ID == "like" {
					return Oracle(ctx, trial)
				}
				return typing(fmt.Sprintf("echo 0.%d >made/file", 7-2*trial.Sample))(ctx, trial)
			},
		})
		require.NoError(t, err)
		return ran, s
	}
	ran, s := run(1)
	require.ElementsMatch(t, []string{"points 1", "like 1"}, ran)
	require.Equal(t, "2 pass of 2 tasks", s.Text())
	require.Positive(t, s.Results[1].Times.Reference)
	ran, s = run(3)
	require.ElementsMatch(t, []string{"points 2", "like 2", "points 3", "like 3"}, ran)
	require.Equal(t, "4 pass, 2 fail of 6 samples of 2 tasks; pass@1 0.67 ± 0.33, "+
		"pass@3 1.00 ± 0.00", s.Text())
	for i, r := range s.Results {
		n := i%3 + 1
		require.Equal(t, n, r.Sample)
		if r.Task == "like" {
			require.Equal(t, n == 1, r.Times.Reference > 0, "%+v", r)
			continue
		}
		require.InDelta(t, 0.7-0.2*float64(n), r.Scores[PointsScore], 1e-9)
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.Dir), filesDir,
			"made/file"))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("0.%d\n", 7-2*n), string(data))
	}
	require.Equal(t, "tasks/points@3", s.Results[2].Dir)

	points.Instruction += " Now."
	ran, s = run(2)
	require.ElementsMatch(t, []string{"points 1", "points 2"}, ran)
	require.Len(t, s.Results, 4)
	require.Equal(t, Fail, s.Results[1].Before)
	like.Solution.Command += "; true" // a reference of its own
	_, s = run(2)
	require.Positive(t, s.Results[2].Times.Reference+s.Results[3].Times.Reference)
	var table strings.Builder
	require.NoError(t, s.WriteTable(&table))
	require.Contains(t, table.String(), "\nlike@2  ")
}

// TestValidate has a sound task, and one of each kind that proves nothing.
func TestValidate(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	sound, easy, wrong := small("sound"), small("easy"), small("wrong")
	without, endless := small("without"), small("endless")
	easy.Check.Command = "true"
	wrong.Solution.Command = "cp work/wanted made/other"
	without.Solution = Script{}
	endless.Check, endless.Solution.Command = Check{Like: []string{"made"}}, "sleep 1000"
	short(&endless)
	dir := t.TempDir()
	c := Config{Tasks: []Task{sound, easy, wrong, without, endless}, Dir: dir, Parallel: 4}
	v, err := Validate(t.Context(), c)
	require.NoError(t, err)
	var table strings.Builder
	require.NoError(t, v.WriteTable(&table))
	require.Regexp(t, `^TASK +PROVES NOTHING, BECAUSE
easy +an agent that does nothing passes
wrong +the reference solution does not pass: fail: check: exit status 1.*
without +the reference solution does not pass: broken: the task has no reference solution
endless +the reference solution does not pass: broken: the reference solution: it took longer .*
tasks that prove nothing: 4 of 5
$`, table.String())
	require.Equal(t, 5, len(v.Oracle.Results))
	require.FileExists(t, filepath.Join(dir, "nop", reportFile))
	c.Agent = Nop
	_, err = Validate(t.Context(), c)
	require.ErrorContains(t, err, "leave them empty")
}
