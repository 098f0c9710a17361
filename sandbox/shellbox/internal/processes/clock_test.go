package processes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClock(t *testing.T) {
	var c clock
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	span := func(up, asked, answered time.Duration) (time.Duration, time.Duration) {
		earliest, latest := c.add(up, at(asked), at(answered))
		return earliest.Sub(start), latest.Sub(start)
	}
	// The host was started at 0. A slow answer leaves a second, a fast one less, and that stays.
	earliest, latest := span(10*time.Second, 9*time.Second+500*time.Millisecond,
		10*time.Second+500*time.Millisecond)
	require.Equal(t, []time.Duration{-500 * time.Millisecond, 500 * time.Millisecond},
		[]time.Duration{earliest, latest})
	span(11*time.Second, 11*time.Second-time.Millisecond, 11*time.Second+time.Millisecond)
	earliest, latest = span(20*time.Second, 19*time.Second, 21*time.Second)
	require.Equal(t, []time.Duration{-time.Millisecond, time.Millisecond},
		[]time.Duration{earliest, latest})

	// An answer that contradicts the others counts alone: the host was started again.
	earliest, latest = span(time.Second, 30*time.Second, 31*time.Second)
	require.Equal(t, []time.Duration{29 * time.Second, 30 * time.Second},
		[]time.Duration{earliest, latest})

	// Old answers do not count.
	earliest, latest = span(122*time.Second, 151*time.Second, 153*time.Second)
	require.Equal(t, []time.Duration{29 * time.Second, 31 * time.Second},
		[]time.Duration{earliest, latest})
}
