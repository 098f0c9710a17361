// Package harnesstest runs one evaluation in any place: the same program for containers, pods and
// this machine.
package harnesstest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/harness"
	"github.com/sandshell/sandshell/sandbox"
)

// A Place is where the evaluation runs.
type Place struct {
	sandbox.Place
	Image string // "" where there are no images
	// Dir is a directory in the boxes in which tasks may make theirs. "" is where the boxes start,
	// if that is another directory for each.
	Dir string
	// Defaults are the limits of the tasks, so that a small cluster has room for some.
	Defaults harness.Limits
}

// Kinds runs the kinds of tasks that evaluations have: with points, with a listing to compare, with
// a gold command that fails or does not end, changed since their results, that prove nothing, and
// several samples of each.
func Kinds(t *testing.T, p Place) {
	t.Run("Validate", func(t *testing.T) { validate(t, p) })
	t.Run("Samples", func(t *testing.T) { samples(t, p) })
}

// config returns what all runs have in common.
func (p Place) config(t *testing.T, tasks []harness.Task) harness.Config {
	return harness.Config{Tasks: tasks, Dir: t.TempDir(), Place: p.Place, Parallel: 2,
		Defaults: p.Defaults}
}

// task returns a task whose solution and check are commands.
func (p Place) task(id, solution, check string) harness.Task {
	task := harness.Task{ID: id, Image: p.Image, Instruction: "Do " + id + ".",
		Solution: harness.Script{Command: solution}}
	task.Check.Command = check
	if p.Dir != "" {
		task.Dir = p.Dir + "/" + id
	}
	return task
}

// junit prints a report of four tests, of which the files pass1 to pass4 say which have passed.
const junit = `{
echo '<testsuites><testsuite name="all">'
for n in 1 2 3 4; do
	if [ -e pass$n ]; then
		echo "<testcase name='t$n'/>"
	else
		echo "<testcase name='t$n'><failure message='no'/></testcase>"
	fi
done
echo '</testsuite></testsuites>'
} >report.xml`

// tasks returns tasks of all kinds.
func (p Place) tasks() []harness.Task {
	object := p.task("points/object", "mkdir out; echo 3 >out/right",
		`n=$(cat out/right); echo 'judged:'; echo "{\"points\": 0.$((n * 25)), \"right\": $n}"`)
	object.Check.Points, object.Check.Pass = []string{"-"}, 0.5
	object.Collect, object.Tags = []string{"out"}, []string{"points"}
	report := p.task("points/junit", "touch pass1 pass2 pass4", junit)
	report.Check.Points = []string{"report.xml"}
	reward := p.task("points/reward", "echo 1 >answer",
		`echo "{\"reward\": $(cat answer)}" >reward.json`)
	reward.Check.Points = []string{"reward.txt", "reward.json"}

	like := p.task("like", "mkdir out; echo 1 >out/a; echo 2 >out/b; grep 3 out/a", "")
	like.Check.Like = []string{"out"}
	endless := p.task("endless", "while :; do :; done", "")
	endless.Check.Like, endless.Limits.Time = []string{"out"}, time.Second
	broken := p.task("setup", "true", "true")
	broken.Setup = "echo 'uv: command not found' >&2; exit 127"
	return []harness.Task{object, report, reward, like, endless, broken,
		p.task("nothing", "true", "true")}
}

func validate(t *testing.T, p Place) {
	c := p.config(t, p.tasks())
	v, err := harness.Validate(t.Context(), c)
	require.NoError(t, err)
	requireStatuses(t, v.Oracle, "pass", "fail", "pass", "pass", "broken", "broken", "pass")
	requireStatuses(t, v.Nop, "fail", "fail", "fail", "fail", "broken", "broken", "pass")
	var faults []string
	for _, f := range v.Faults {
		faults = append(faults, f.Task+": "+f.What)
	}
	require.Len(t, faults, 4)
	require.Equal(t, "points/junit: the reference solution does not pass: fail: check: "+
		"0.75 points: a pass takes 1", faults[0])
	require.Contains(t, faults[1], "endless: the reference solution does not pass: broken: ")
	require.Contains(t, faults[2], "uv: command not found")
	require.Equal(t, "nothing: an agent that does nothing passes", faults[3])

	results := v.Oracle.Results
	require.Equal(t, map[string]float64{harness.PointsScore: 0.75, "right": 3}, results[0].Scores)
	require.Equal(t, map[string]float64{harness.PointsScore: 0.75, "passed": 3, "tests": 4},
		results[1].Scores)
	require.Equal(t, map[string]float64{harness.PointsScore: 1}, results[2].Scores)
	require.Equal(t, "0.83 ± 0.08", v.Oracle.Score(harness.PointsScore).String())
	out, err := os.ReadFile(filepath.Join(c.Dir, "oracle", results[0].Dir, "files", "out", "right"))
	require.NoError(t, err)
	require.Equal(t, "3\n", string(out))
	require.Contains(t, results[4].Reason, "took longer than 1s")

	// The tests of a task change, and all its tests now pass. Other results stay.
	c.Tasks[1].Solution.Command += " pass3"
	began := time.Now()
	v, err = harness.Validate(t.Context(), c)
	require.NoError(t, err)
	requireStatuses(t, v.Oracle, "pass", "pass", "pass", "pass", "broken", "broken", "pass")
	for i, r := range append(v.Oracle.Results, v.Nop.Results...) {
		changed := i%len(c.Tasks) == 1
		require.Equal(t, changed, r.Started.After(began), "%s has run again", r.Task)
		require.Equal(t, changed, r.Before == harness.Fail, r.Task)
	}
	var table strings.Builder
	require.NoError(t, v.Oracle.WriteTable(&table))
	require.Contains(t, table.String(), "pass (changed, was fail)")
}

// samples runs an agent that passes one task in each sample, one in the first only, and one in
// none.
func samples(t *testing.T, p Place) {
	c := p.config(t, []harness.Task{p.task("always", "touch done", "test -e done"),
		p.task("sometimes", "touch done", "test -e done"), p.task("never", "true", "test -e done")})
	for i := range c.Tasks {
		c.Tasks[i].Setup = "rm -f done" // where boxes share a directory
	}
	c.Name, c.Samples, c.Parallel = "agent", 2, 1
	var calls atomic.Int32
	c.Agent = func(ctx context.Context, trial *harness.Trial) error {
		calls.Add(1)
		trial.Count("tokens", 10)
		if trial.Task.ID == "sometimes" && trial.Sample > 1 {
			return nil
		}
		return harness.Oracle(ctx, trial)
	}
	s, err := harness.Run(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "3 pass, 3 fail of 6 samples of 3 tasks; pass@1 0.50 ± 0.29, "+
		"pass@2 0.67 ± 0.33", s.Text())
	c.Samples = 4
	s, err = harness.Run(t.Context(), c)
	require.NoError(t, err)
	require.EqualValues(t, 12, calls.Load(), "the first two samples stay")
	require.Equal(t, "5 pass, 7 fail of 12 samples of 3 tasks; pass@1 0.42 ± 0.30, "+
		"pass@4 0.67 ± 0.33", s.Text())
	require.Equal(t, "0.50 ± 0.29", s.PassAt(2).String())
	require.EqualValues(t, 120, s.Count("tokens"))
}

func requireStatuses(t *testing.T, s *harness.Summary, want ...harness.Status) {
	t.Helper()
	var got []harness.Status
	for _, r := range s.Results {
		got = append(got, r.Status)
		if len(got) <= len(want) && r.Status != want[len(got)-1] {
			t.Logf("%s: %s: %s", r.Task, r.Status, r.Reason)
		}
	}
	require.Equal(t, want, got)
}
