//go:build linux

package bench

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// BenchmarkWaiting measures the time from a program's read to the Result that it waits. The program
// prints the time right before it reads. The limit applies to the second slowest of a hundred. A
// program that polls counts as waiting only after a quiet second.
func BenchmarkWaiting(b *testing.B) {
	for _, program := range []struct {
		name, before, read string
		kind               sandbox.InputKind
		answer             string
		rounds             int
		quiet              time.Duration
	}{
		{"line", "", `read -r x`, sandbox.Line, "a\n", 60, 0},
		{"secret", "", `read -rs x`, sandbox.Secret, "a\n", 60, 0},
		{"key", "", `read -rsn1 x`, sandbox.Keys, "a", 60, 0},
		{"key-polled", "", `read -rsn1 -t 100 x`, sandbox.Keys, "a", 20, time.Second},
		// by then, the session looks less often
		{"line-after-work", "sleep 0.$((RANDOM % 500 + 200));", `read -r x`, sandbox.Line, "a\n",
			20, 0},
	} {
		b.Run(program.name, func(b *testing.B) {
			places(b, func(b *testing.B, p place) {
				command := `bash -c '` + program.before + `printf "%s\n" "$EPOCHREALTIME"; ` +
					program.read + `'`
				box := open(b, p)
				var took []time.Duration
				turn := func() {
					r, err := box.Execute(b.Context(), command)
					now := time.Now()
					if err != nil || r.State != sandbox.Waiting || r.Awaits != program.kind {
						b.Fatalf("%+v, %v", r, err)
					}
					seconds, micros, _ := strings.Cut(strings.TrimSpace(r.Output), ".")
					s, err := strconv.ParseInt(seconds+micros, 10, 64)
					noError(b, err)
					took = append(took, now.Sub(time.UnixMicro(s)))
					if r, err := box.Input(b.Context(), program.answer); err != nil ||
						r.State != sandbox.Exited {
						b.Fatalf("%+v, %v", r, err)
					}
				}
				turn()
				took = nil
				n := 0
				for ; b.Loop(); n++ {
					turn()
				}
				for ; n < program.rounds; n++ {
					turn()
				}
				report(b, 0, quantile(took, 0.99))
				b.ReportMetric(float64(n), "turns")
				b.ReportMetric(float64(quantile(took, 0.5)), "p50-ns")
				b.ReportMetric(float64(program.quiet+50*time.Millisecond), "max-more-ns")
			})
		})
	}
}
