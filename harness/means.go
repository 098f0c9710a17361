package harness

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sandshell/sandshell/internal/printable"
)

// Score returns the mean of a score over the tasks. A task counts with the mean of its results that
// have the score. Results that are Lost or Broken do not count, nor do those without the score,
// such as the points of a task whose agent took too long: Rate.Tasks says how many tasks count.
func (s *Summary) Score(name string) Rate {
	var values []float64
	var sum, n float64
	for i, r := range s.Results { // the samples of a task are together
		if value, ok := r.Scores[name]; ok && r.Status != Lost && r.Status != Broken {
			sum, n = sum+value, n+1
		}
		last := i == len(s.Results)-1 || s.Results[i+1].Task != r.Task
		if last && n > 0 {
			values = append(values, sum/n)
		}
		if last {
			sum, n = 0, 0
		}
	}
	return rateOf(values)
}

// Count returns the sum of a count, such as "tokens", over all results.
func (s *Summary) Count(name string) float64 {
	var sum float64
	for _, r := range s.Results {
		sum += r.Counts[name]
	}
	return sum
}

// longNumber is from where on numbers are written with an exponent.
const longNumber = 1e15

// sumText returns a sum with at most four digits after the point.
func sumText(sum float64) string {
	if math.Abs(sum) >= longNumber {
		return fmt.Sprintf("%.3g", sum)
	}
	return strconv.FormatFloat(math.Round(sum*1e4)/1e4, 'f', -1, 64)
}

// writeNumbers writes a line with the means of all scores, and one with the sums of all counts, in
// the order of their names.
func (s *Summary) writeNumbers(w io.Writer) error {
	scores, counts := map[string]bool{}, map[string]bool{}
	for _, r := range s.Results {
		for name := range r.Scores {
			scores[name] = true
		}
		for name := range r.Counts {
			counts[name] = true
		}
	}
	var means, sums []string
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		rate := s.Score(name)
		text := printable.Line(name) + " " + rate.String()
		if math.Abs(rate.Value) >= longNumber {
			text = fmt.Sprintf("%s %.3g", printable.Line(name), rate.Value)
		}
		if rate.Tasks < s.Tasks {
			text += fmt.Sprintf(" (%d of %d tasks)", rate.Tasks, s.Tasks)
		}
		means = append(means, text)
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		sums = append(sums, printable.Line(name)+" "+sumText(s.Count(name)))
	}
	for _, line := range []struct {
		what  string
		items []string
	}{{"scores (means)", means}, {"counts (sums)", sums}} {
		if len(line.items) == 0 {
			continue
		}
		text := line.what + ": " + strings.Join(line.items, ", ")
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}
