package processes

import (
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

// A clock says when the host was started, on this machine's clock. Each answer of the host is of
// some moment between the question and the answer, so it gives a span. On a busy machine that span
// is long. What several answers have in common is shorter.
type clock struct {
	mu               sync.Mutex
	earliest, latest time.Time // of the host's start
	since            time.Time // the first of the answers
}

// clockMemory is how long answers count. The clocks of two machines may differ by some milliseconds
// after that time.
const clockMemory = 2 * time.Minute

// add adds that the host had been up for that time at a moment between asked and answered. It
// returns the span of the host's start.
func (c *clock) add(up time.Duration, asked, answered time.Time) (earliest, latest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	earliest, latest = asked.Add(-up), answered.Add(-up)
	known := !c.since.IsZero() && answered.Sub(c.since) < clockMemory &&
		!c.latest.Before(earliest) && !c.earliest.After(latest)
	if !known {
		c.earliest, c.latest, c.since = earliest, latest, answered
		return earliest, latest
	}
	if c.earliest.Before(earliest) {
		c.earliest = earliest
	}
	if c.latest.After(latest) {
		c.latest = latest
	}
	return c.earliest, c.latest
}

// ticksOf returns a time of this machine on the clock of proc.Process.Start: not before earliest
// and not after latest. Both are 0 if the host does not know.
func (h *Host) ticksOf(when time.Time) (earliest, latest int64) {
	asked := time.Now()
	up := h.uptime()
	if up <= 0 {
		return 0, 0
	}
	first, last := h.clock.add(up, asked, time.Now())
	ticks := func(d time.Duration) int64 { return int64(d.Seconds() * proc.TicksPerSecond) }
	return ticks(when.Sub(last)), ticks(when.Sub(first))
}
