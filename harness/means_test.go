package harness

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMeans checks that each task counts once for the mean of a score, whatever its samples, and
// that counts add up.
func TestMeans(t *testing.T) {
	t.Parallel()
	result := func(task string, status Status, points, tokens float64) Result {
		r := Result{Task: task, Status: status}
		if points >= 0 {
			r.Scores = map[string]float64{PointsScore: points}
		}
		if tokens > 0 {
			r.Counts = map[string]float64{"tokens": tokens}
		}
		return r
	}
	s := Summary{Tasks: 5, Samples: 2, Counts: map[Status]int{}, Results: []Result{
		result("a", Pass, 1, 100), result("a", Fail, 0, 200),
		result("b", Pass, 1, 1.5), result("b", Timeout, -1, 0),
		result("c", Timeout, -1, 1e6), result("c", Timeout, -1, 0),
		result("d", Broken, 1, 0), result("d", Lost, 1, 0),
	}}
	require.Equal(t, Rate{Value: 0.75, Error: 0.25, Tasks: 2}, s.Score(PointsScore))
	require.Equal(t, Rate{}, s.Score("none"))
	require.Equal(t, 1000301.5, s.Count("tokens"))
	require.Zero(t, s.Count("none"))
	var table strings.Builder
	require.NoError(t, s.WriteTable(&table))
	require.Contains(t, table.String(), "\nscores (means): points 0.75 ± 0.25 (2 of 5 tasks)\n"+
		"counts (sums): tokens 1000301.5\n")
	require.Equal(t, []string{"0.3", "120", "-1e+300", "+Inf"}, []string{sumText(0.1 + 0.2),
		sumText(120), sumText(-1e300), sumText(math.Inf(1))})
	table.Reset()
	require.NoError(t, (&Summary{Tasks: 1}).WriteTable(&table))
	require.NotContains(t, table.String(), "(means)")
	require.NotContains(t, table.String(), "(sums)")
}
