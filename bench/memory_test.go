//go:build linux

package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"
)

// BenchmarkMemory is how much more memory this side needs while a command prints 1 GB than when it is idle: what the system counts as
// resident, in a process of its own.
func BenchmarkMemory(b *testing.B) {
	for _, name := range []string{"local", "ssh"} {
		b.Run(name, func(b *testing.B) {
			if name == "ssh" {
				startSSHD(b) // skips where there is none
			}
			for range b.N {
				cmd := exec.Command(os.Args[0], "-test.run=^TestPrintGigabyte$", "-test.v")
				cmd.Env = append(os.Environ(), "SANDSHELL_BENCH_PLACE="+name)
				out, err := cmd.CombinedOutput()
				var idle, peak, heap float64
				if i := bytes.Index(out, []byte("idle ")); err != nil || i < 0 {
					b.Fatalf("%v: %s", err, out)
				} else if _, err := fmt.Sscanf(string(out[i:]), "idle %g peak %g heap %g", &idle, &peak, &heap); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				b.ReportMetric(idle, "floor-B")
				b.ReportMetric(peak, "ours-B")
				b.ReportMetric(heap, "runtime-more-B")
				b.ReportMetric(16<<20, "max-more-B")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// TestPrintGigabyte is the process of BenchmarkMemory.
func TestPrintGigabyte(t *testing.T) {
	var at place
	switch os.Getenv("SANDSHELL_BENCH_PLACE") {
	case "local":
		at = local{}
	case "ssh":
		at = startSSHD(t)
	default:
		t.Skip("it is BenchmarkMemory's")
	}
	box := open(t, at)
	p := newPrinter(t, box)
	execute(t, box, ":")
	debug.FreeOSMemory()
	idle, runtimeIdle := status(t, "VmRSS"), runtimeMemory()
	noError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // VmHWM begins anew

	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			peak = max(peak, runtimeMemory())
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				done <- peak
				return
			}
		}
	}()
	p.print(100)
	peak := status(t, "VmHWM")
	close(stop)
	fmt.Printf("idle %d peak %d heap %d\n", idle, peak, <-done-runtimeIdle)
}

// status is a line of /proc/self/status, in bytes.
func status(t testing.TB, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	noError(t, err)
	m := regexp.MustCompile(name + `:\s*(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in %s", name, text)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n << 10
}

// runtimeMemory is what Go's runtime has mapped and not given back.
func runtimeMemory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
