package procfs

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
)

func benchmarkLook(b *testing.B, command string) {
	s := startSession(b)
	s.run(command)
	s.until(func(l proc.Look) bool {
		return l.Reads == "" && len(Tree(s.pid)) > 1 && len(l.Waits) == 0
	})
	var before, after unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &before)
	for b.Loop() {
		Look(s.pid)
	}
	unix.Getrusage(unix.RUSAGE_SELF, &after)
	used := time.Duration(
		after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
}

// A shell and a sleep, on this machine as it is.
func BenchmarkLook(b *testing.B) { benchmarkLook(b, "sleep 1000") }

// The same with 500 processes that have nothing to do with it.
func BenchmarkLookAmong500(b *testing.B) {
	for range 500 {
		cmd := exec.Command("sleep", "1000")
		require.NoError(b, cmd.Start())
		b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
	benchmarkLook(b, "sleep 1000")
}
