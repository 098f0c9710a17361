//go:build linux

package bench

import "testing"

// BenchmarkExecute executes the command ":". The floor types the same bytes to the same shell, over
// the same transport.
func BenchmarkExecute(b *testing.B) {
	places(b, func(b *testing.B, p place) {
		box := open(b, p)
		comparison{
			floor: record(b).repeat(bare(b, p)), ours: func() { execute(b, box, ":") },
			rounds: 60, batch: 50, maxRatio: 1.25,
		}.run(b)
	})
}
