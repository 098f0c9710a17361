//go:build linux

package bench

import (
	"slices"
	"testing"
	"time"
)

// A comparison measures the library and its floor in turns.
type comparison struct {
	floor, ours func() // one call

	rounds int // the least number of turns, whatever -benchtime says
	// calls in a turn; 0 is 1. Short calls need many: a processor that sleeps takes long to wake.
	batch  int
	bytes  int    // that a call moves; for MB/s
	before func() // runs before each call, and is not measured

	maxRatio float64       // ours may take at most so many times the floor; 0: no limit
	maxMore  time.Duration // ours may take at most so much longer; 0: no limit
}

// run measures, and reports the metrics that the table needs: see ./table.
func (c comparison) run(b *testing.B) {
	b.Helper()
	calls := []func(){c.floor, c.ours}
	took := make([][]time.Duration, len(calls)) // the durations of each call
	var ratios []float64                        // of ours to the floor, for each turn
	turn := func(n int) {
		medians := make([]time.Duration, len(calls))
		for k := range calls {
			i := (n + k) % len(calls) // each is first equally often
			if n%2 == 1 {
				i = len(calls) - 1 - i
			}
			var these []time.Duration
			for range max(c.batch, 1) {
				if c.before != nil {
					c.before()
				}
				begin := time.Now()
				calls[i]()
				these = append(these, time.Since(begin))
			}
			took[i] = append(took[i], these...)
			medians[i] = quantile(these, 0.5)
		}
		ratios = append(ratios, float64(medians[1])/float64(medians[0]))
	}
	turn(0) // fills caches
	clear(took)
	ratios = nil
	n := 0
	for ; b.Loop(); n++ {
		turn(n)
	}
	for ; n < c.rounds; n++ {
		turn(n)
	}
	report(b, quantile(took[0], 0.5), quantile(took[1], 0.5))
	b.ReportMetric(float64(n), "turns")
	b.ReportMetric(quantile(ratios, 0.25), "ratio-q1")
	b.ReportMetric(quantile(ratios, 0.75), "ratio-q3")
	perSecond := func(i int) float64 {
		return float64(c.bytes) / 1e6 / quantile(took[i], 0.5).Seconds()
	}
	if c.bytes > 0 {
		b.ReportMetric(perSecond(0), "floor-MB/s")
		b.ReportMetric(perSecond(1), "ours-MB/s")
	}
	if c.maxRatio > 0 {
		b.ReportMetric(c.maxRatio, "max-ratio")
	}
	if c.maxMore > 0 {
		b.ReportMetric(float64(c.maxMore), "max-more-ns")
	}
}

func report(b *testing.B, floor, ours time.Duration) {
	b.ReportMetric(float64(floor), "floor-ns")
	b.ReportMetric(float64(ours), "ours-ns")
	b.ReportMetric(0, "ns/op") // it would be the time of ours and floor together
}

// quantile returns the value below which the fraction q of all values is.
func quantile[T time.Duration | float64](all []T, q float64) T {
	all = slices.Sorted(slices.Values(all))
	return all[min(int(float64(len(all))*q), len(all)-1)]
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
