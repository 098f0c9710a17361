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

	"github.com/sandshell/sandshell/sandbox"
)

// BenchmarkMemory reports how much more resident memory a program needs while a command prints 1 GB
// than while the box is idle. It measures in a separate process. With docker, it also measures
// boxd, process 1 of the container.
func BenchmarkMemory(b *testing.B) {
	b.Run("local", func(b *testing.B) { measureMemory(b, "local").report(b) })
	b.Run("ssh", func(b *testing.B) {
		startSSHD(b) // skips if there is no sshd
		measureMemory(b, "ssh").report(b)
	})
	var docker memory
	b.Run("docker", func(b *testing.B) {
		engine(b)
		docker = measureMemory(b, "docker")
		docker.report(b)
	})
	b.Run("boxd", func(b *testing.B) {
		if docker.idle == 0 {
			b.Skip("the benchmark docker measures boxd, too")
		}
		memory{idle: docker.insideIdle, peak: docker.insidePeak}.report(b)
	})
}

// memory is the report of TestPrintGigabyte.
type memory struct{ idle, peak, heap, insideIdle, insidePeak float64 }

func measureMemory(b *testing.B, place string) (m memory) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestPrintGigabyte$", "-test.v")
	cmd.Env = append(os.Environ(), "SANDSHELL_BENCH_PLACE="+place)
	out, err := cmd.CombinedOutput()
	i := bytes.Index(out, []byte("idle "))
	if err != nil || i < 0 {
		b.Fatalf("%v: %s", err, out)
	}
	if _, err := fmt.Sscanf(string(out[i:]), "idle %g peak %g heap %g inside %g %g", &m.idle,
		&m.peak, &m.heap, &m.insideIdle, &m.insidePeak); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return m
}

func (m memory) report(b *testing.B) {
	b.ReportMetric(m.idle, "floor-B")
	b.ReportMetric(m.peak, "ours-B")
	if m.heap > 0 {
		b.ReportMetric(m.heap, "runtime-more-B")
	}
	b.ReportMetric(16<<20, "max-more-B")
	b.ReportMetric(0, "ns/op")
}

// TestPrintGigabyte is the process that BenchmarkMemory starts.
func TestPrintGigabyte(t *testing.T) {
	var at place
	switch os.Getenv("SANDSHELL_BENCH_PLACE") {
	case "local":
		at = local{}
	case "ssh":
		at = startSSHD(t)
	case "docker":
		at = &containers{}
	default:
		t.Skip("BenchmarkMemory runs it, in its own process: make bench")
	}
	box := open(t, at)
	p := newPrinter(t, box)
	execute(t, box, ":")
	insideIdle := initStatus(t, box, "VmRSS")
	debug.FreeOSMemory()
	idle, runtimeIdle := status(t, "VmRSS"), runtimeMemory()
	noError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // resets VmHWM

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
	fmt.Printf("idle %d peak %d heap %d inside %d %d\n", idle, peak, <-done-runtimeIdle, insideIdle,
		initStatus(t, box, "VmHWM"))
}

// status returns a value of /proc/self/status, in bytes.
func status(t testing.TB, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	noError(t, err)
	return statusIn(t, text, name)
}

// initStatus returns a value of the box's /proc/1/status, in bytes.
func initStatus(t testing.TB, box sandbox.Sandbox, name string) int {
	t.Helper()
	return statusIn(t, []byte(execute(t, box, "cat /proc/1/status").Output), name)
}

func statusIn(t testing.TB, text []byte, name string) int {
	t.Helper()
	m := regexp.MustCompile(name + `:\s*(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in %s", name, text)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n << 10
}

// runtimeMemory returns how much memory Go's runtime has mapped and not returned.
func runtimeMemory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
