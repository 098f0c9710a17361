//go:build linux

package bench

import (
	"slices"
	"testing"
	"time"
)

// A comparison is a floor and what it is the floor of, measured by turns.
type comparison struct {
	floor, ours func() // one call of each

	rounds int    // at least so many turns each, whatever -benchtime says
	batch  int    // calls a turn; 0 is 1. Many when they are short, so that neither wakes a processor that the other let sleep.
	bytes  int    // that a call moves; for MB/s
	before func() // what is to be done before each call, and does not count

	maxRatio float64       // limit: ours is at most so many times the floor; 0 is none
	maxMore  time.Duration // limit: ours is at most so much longer than the floor; 0 is none
}

// run measures, and reports what the table wants (see ./table).
func (c comparison) run(b *testing.B) {
	b.Helper()
	var floor, ours []time.Duration
	measure := func(f func(), to *[]time.Duration) {
		for range max(c.batch, 1) {
			if c.before != nil {
				c.before()
			}
			begin := time.Now()
			f()
			*to = append(*to, time.Since(begin))
		}
	}
	turn := func(n int) {
		if n%2 == 0 {
			measure(c.floor, &floor)
			measure(c.ours, &ours)
		} else {
			measure(c.ours, &ours)
			measure(c.floor, &floor)
		}
	}
	turn(0) // caches and first calls
	floor, ours = nil, nil
	n := 0
	for ; b.Loop(); n++ {
		turn(n)
	}
	for ; n < c.rounds; n++ {
		turn(n)
	}
	report(b, quantile(floor, 0.5), quantile(ours, 0.5))
	if c.bytes > 0 {
		b.ReportMetric(float64(c.bytes)/1e6/quantile(floor, 0.5).Seconds(), "floor-MB/s")
		b.ReportMetric(float64(c.bytes)/1e6/quantile(ours, 0.5).Seconds(), "ours-MB/s")
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
	b.ReportMetric(0, "ns/op") // of both together: says nothing
}

// quantile returns the duration below which the fraction q of all is.
func quantile(all []time.Duration, q float64) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[min(int(float64(len(all))*q), len(all)-1)]
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
