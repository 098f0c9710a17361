//go:build linux

package bench

import (
	"testing"

	"github.com/sandshell/sandshell/sandbox"
)

// BenchmarkExecute is the least command, beside the same bytes typed to the same shell on the same terminal.
func BenchmarkExecute(b *testing.B) {
	places(b, func(b *testing.B, p place) {
		ours, openSSH := withEach(b, p, func(box sandbox.Sandbox) func() { return func() { execute(b, box, ":") } })
		comparison{
			floor: overhear(b).adopt(bare(b, p)), ours: ours, openSSH: openSSH,
			rounds: 60, batch: 50, maxRatio: 1.25, maxOpenSSH: 1,
		}.run(b)
	})
}
