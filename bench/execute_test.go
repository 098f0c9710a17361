//go:build linux

package bench

import "testing"

// BenchmarkExecute is the least command, beside the same bytes typed to the same shell on a
// terminal reached in the same way.
func BenchmarkExecute(b *testing.B) {
	places(b, func(b *testing.B, p place) {
		box := open(b, p)
		comparison{
			floor: record(b).repeat(bare(b, p)), ours: func() { execute(b, box, ":") },
			rounds: 60, batch: 50, maxRatio: 1.25,
		}.run(b)
	})
}
