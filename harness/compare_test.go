package harness

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// compared returns a run with results such as "a pass fail": samples of a task.
func compared(samples int, lines ...string) *Summary {
	s := &Summary{Agent: "agent", Samples: samples, Counts: map[Status]int{}}
	for _, line := range lines {
		words := strings.Fields(line)
		for i, status := range words[1:] {
			id := sampleID{words[0], i + 1}
			s.Results = append(s.Results, Result{Task: id.task, Sample: id.sample, Dir: id.dir(),
				Status: Status(status), Digest: "d", Seconds: 10, Attempts: 1})
		}
		s.Tasks++
	}
	return s
}

// TestCompare has a task of each change, and checks the table, the means and the JSON.
func TestCompare(t *testing.T) {
	t.Parallel()
	before := compared(2, "better fail pass", "worse pass pass", "equal fail pass",
		"points fail fail", "changed pass pass", "lost lost broken", "gone fail", "half lost pass")
	after := compared(3, "better pass pass", "worse fail timeout lost", "equal fail pass",
		"points fail fail", "changed fail fail", "lost pass pass", "new pass", "half pass pass")
	for i := range after.Results {
		r := &after.Results[i]
		switch r.Task {
		case "changed":
			r.Digest = "other"
		case "worse":
			r.Reason = "check: \x1b[31mno\nmore"
			r.Counts = map[string]float64{"tokens": 300}
		case "points":
			r.Scores = map[string]float64{PointsScore: 0.5 * float64(r.Sample)}
		}
	}
	for i := range before.Results {
		r := &before.Results[i]
		switch r.Task {
		case "worse":
			r.Counts = map[string]float64{"tokens": float64(100 * r.Sample)}
		case "points":
			r.Scores = map[string]float64{PointsScore: 0.25}
		}
	}
	c := Compare(before, after)
	var table bytes.Buffer
	require.NoError(t, c.WriteTable(&table))
	tasks, _, _ := strings.Cut(table.String(), "\n\n")
	require.Equal(t, `TASK     CHANGE       BEFORE            AFTER                      REASON
worse    worse        2 pass            1 fail, 1 timeout, 1 lost  check: \x1b[31mno
better   better       1 pass, 1 fail    2 pass
points   better       2 fail (0.25)     2 fail (0.75)
changed  changed      2 pass            2 fail
lost     unknown      1 lost, 1 broken  2 pass
gone     only before  fail
new      only after                     pass`,
		regexp.MustCompile(` +(\n|$)`).ReplaceAllString(tasks, "$1"))
	require.Contains(t, table.String(), "\n1 worse, 2 better, 1 changed, 1 unknown, "+
		"1 only before, 1 only after, 2 equal; pass@1 0.60 -> 0.50: -0.10 ± 0.24\n")

	means := map[string]MeanChange{}
	for _, m := range c.Means {
		means[m.Name] = m
	}
	one, two := means["pass@1"], means["pass@2"]
	require.Equal(t, 5, one.Change.Tasks, "better, worse, equal, points and half")
	require.InDelta(t, 0.6, one.Before.Value, 1e-12) // of 1/2, 1, 1/2, 0, 1
	require.InDelta(t, 0.5, one.After.Value, 1e-12)  // of 1, 0, 1/2, 0, 1
	require.InDelta(t, -0.1, one.Change.Value, 1e-12)
	require.InDelta(t, math.Sqrt(1.2/4/5), one.Change.Error, 1e-12) // of 1/2, -1, 0, 0, 0
	require.Equal(t, 4, two.Change.Tasks, "half has one result that counts")
	require.InDelta(t, 0.5, means[PointsScore].Change.Value, 1e-12)
	require.Equal(t, Rate{Value: 150, Tasks: 1}, means["tokens"].Before)
	require.Equal(t, Rate{Value: 300, Tasks: 1}, means["tokens"].After)
	require.Equal(t, Rate{Value: 10, Tasks: 5}, means["in all"].Before)
	require.Equal(t, 1.0, c.Chance)

	text, err := json.Marshal(c)
	require.NoError(t, err)
	var read Comparison
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, c.Means, read.Means)
	require.Equal(t, c.Counts, read.Counts)
	require.Len(t, read.Tasks, len(c.Tasks))

	before.Results[0].Scores = map[string]float64{PointsScore: math.MaxFloat64}
	after.Results[0].Scores = map[string]float64{PointsScore: -math.MaxFloat64}
	_, err = json.Marshal(Compare(before, after))
	require.NoError(t, err)
	require.Equal(t, "no result in either run", Compare(&Summary{}, &Summary{}).Text())
}

// TestSignTest compares with sums over all outcomes.
func TestSignTest(t *testing.T) {
	t.Parallel()
	for n := range 12 {
		for a := range n + 1 {
			var extreme int
			for outcome := range 1 << n {
				heads := 0
				for i := range n {
					heads += outcome >> i & 1
				}
				if min(heads, n-heads) <= min(a, n-a) {
					extreme++
				}
			}
			require.InDelta(t, float64(extreme)/float64(int(1)<<n), signTest(a, n-a), 1e-9,
				"%d of %d", a, n)
		}
	}
	require.InDelta(t, 0.0, signTest(5000, 0), 1e-300)
}

// TestReadResults reads directories that Run has written, is writing, and has not written.
func TestReadResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := ReadResults(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "holds no results")
	results, err := openResults(dir, "agent")
	require.NoError(t, err)
	defer results.close()
	for _, r := range compared(2, "b pass fail", "a lost").Results {
		require.NoError(t, results.add(r))
	}
	_, err = results.file.WriteString(`{"task":"half`)
	require.NoError(t, err)
	s, err := ReadResults(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"agent", "1 pass, 1 fail, 1 lost of 4 samples of 2 tasks; " +
		"pass@1 0.50, pass@2 1.00"}, []string{s.Agent, s.Text()})
	require.Equal(t, "a", s.Results[0].Task)
	require.Equal(t, dir, s.Dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, runFile), []byte("{}"), 0o600))
	_, err = ReadResults(dir)
	require.ErrorContains(t, err, "run.json:1: sandshell did not write it")
}
