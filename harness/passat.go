package harness

import (
	"fmt"
	"math"
	"slices"
)

// A Rate is an estimate of a mean over tasks: of how many are passed, between 0 and 1, or of a
// score.
type Rate struct {
	Value float64 `json:"value"`
	// Error is the standard error of Value. It comes from how much the tasks differ, each counting
	// once, so that samples of one task do not count as independent. It is 0 if Tasks is less than
	// 2, because then it is not known.
	Error float64 `json:"error"`
	Tasks int     `json:"tasks"` // with results enough; if it is 0, nothing is known
}

// rateOf returns the mean of the values of tasks.
func rateOf(values []float64) Rate {
	var rate Rate
	var squares float64 // of differences from the mean: Welford's algorithm
	for _, v := range values {
		rate.Tasks++
		off := v - rate.Value
		rate.Value += off / float64(rate.Tasks)
		squares += off * (v - rate.Value)
	}
	if m := float64(rate.Tasks); m > 1 {
		rate.Error = finite(math.Sqrt(squares / (m - 1) / m))
	}
	rate.Value = finite(rate.Value)
	return rate
}

// finite returns the nearest number that JSON can hold. An agent's scores may be of any size.
func finite(value float64) float64 {
	if math.IsNaN(value) {
		return math.MaxFloat64
	}
	return max(min(value, math.MaxFloat64), -math.MaxFloat64)
}

// String returns a text such as "0.62 ± 0.11".
func (r Rate) String() string {
	switch r.Tasks {
	case 0:
		return "unknown"
	case 1:
		return fmt.Sprintf("%.2f", r.Value)
	}
	return fmt.Sprintf("%.2f ± %.2f", r.Value, r.Error)
}

// PassAt estimates pass@k: how probable it is that at least one of k samples of a task passes. For
// a task with n results of which c have passed, that is 1 - C(n-c, k) / C(n, k), the estimator
// without bias (Chen et al. 2021, "Evaluating Large Language Models Trained on Code"). The Rate is
// the mean of the tasks. Results that are Lost or Broken do not count, and neither does a task with
// less than k others.
func (s *Summary) PassAt(k int) Rate {
	results, passed := map[string]int{}, map[string]int{} // by task
	for _, r := range s.Results {
		if r.Status != Lost && r.Status != Broken {
			results[r.Task]++
		}
		if r.Status == Pass {
			passed[r.Task]++
		}
	}
	var values []float64
	for task, n := range results {
		if k >= 1 && n >= k {
			values = append(values, passAt(n, passed[task], k))
		}
	}
	slices.Sort(values) // so that the sum is the same each time
	return rateOf(values)
}

// passAt returns 1 - C(n-c, k) / C(n, k) as a product, which does not overflow.
func passAt(n, c, k int) float64 {
	if n-c < k {
		return 1
	}
	fails := 1.0
	for i := n - c + 1; i <= n; i++ {
		fails *= 1 - float64(k)/float64(i)
	}
	return 1 - fails
}
