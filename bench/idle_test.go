//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sshbox"
)

// idleBoxes is the number of boxes whose cost is measured together.
const idleBoxes = 10

// BenchmarkIdle reports what one idle box in a container costs: memory and goroutines of this
// program, and private resident memory of boxd, whose code all boxes share.
func BenchmarkIdle(b *testing.B) {
	memory, _, goroutines, boxd := idle(b)
	report := func(name string, ours, most float64, more func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(ours, "ours-B")
			b.ReportMetric(most, "max-more-B")
			b.ReportMetric(0, "ns/op")
			more(b)
		})
	}
	report("program", memory, idleMemory, func(b *testing.B) {
		b.ReportMetric(goroutines, "goroutines")
		b.ReportMetric(idleGoroutines, "max-goroutines")
	})
	report("boxd", boxd, idleBoxd, func(*testing.B) {})
}

// The limits of TestIdle.
const (
	idleMemory     = 200 << 10
	idleGoroutines = 8
	idleBoxd       = 6 << 20
)

// TestIdle checks the cost of an idle box. It counts memory in use: what the runtime has mapped
// depends on how many boxes started at once. With the race detector, everything costs more.
func TestIdle(t *testing.T) {
	testenv.NeedsAll(t, "it makes eleven boxes")
	if raced {
		t.Skip("the race detector needs memory, too: run this test without -race")
	}
	mapped, used, goroutines, boxd := idle(t)
	t.Logf("%.0f KiB (mapped %.0f), %.0f goroutines, boxd %.1f MiB", used/(1<<10), mapped/(1<<10),
		goroutines, boxd/(1<<20))
	if used > idleMemory || goroutines > idleGoroutines || boxd > idleBoxd {
		t.Errorf("at most %d KiB, %d goroutines, boxd %d MiB", idleMemory>>10, idleGoroutines,
			idleBoxd>>20)
	}
}

// idle measures the cost of a box.
func idle(t testing.TB) (mapped, used, goroutines, boxd float64) {
	engine(t)
	// in its own process
	cmd := exec.Command(os.Args[0], "-test.run=^TestIdleBoxes$", "-test.v")
	cmd.Env = append(os.Environ(), "SANDSHELL_BENCH_PLACE=idle")
	out, err := cmd.CombinedOutput()
	i := bytes.Index(out, []byte("a box costs "))
	if err != nil || i < 0 {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := fmt.Sscanf(string(out[i:]), "a box costs %g bytes, in use %g, %g goroutines, "+
		"its boxd %g bytes", &mapped, &used, &goroutines, &boxd); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return mapped, used, goroutines, boxd
}

// TestIdleBoxes is the process that BenchmarkIdle and TestIdle start.
func TestIdleBoxes(t *testing.T) {
	if os.Getenv("SANDSHELL_BENCH_PLACE") != "idle" {
		t.Skip("TestIdle and BenchmarkIdle run it, in its own process")
	}
	start := func() *sshbox.DockerSSHBox {
		box, err := sshbox.New(context.Background(), sshbox.Config{Image: testImage,
			Network: "none"})
		noError(t, err)
		t.Cleanup(func() { box.Close() })
		execute(t, box, "sleep 0.1; echo hi")
		return box
	}
	settle := func() (mapped, used uint64, goroutines int) {
		runtime.GC()
		debug.FreeOSMemory()
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"},
			{Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(s)
		return runtimeMemory(), s[0].Value.Uint64() + s[1].Value.Uint64(), runtime.NumGoroutine()
	}
	start() // allocates what all boxes share
	mapped, used, goroutines := settle()
	boxes := make([]*sshbox.DockerSSHBox, idleBoxes)
	var starting sync.WaitGroup
	for i := range boxes {
		starting.Go(func() { boxes[i] = start() })
	}
	starting.Wait()
	resident := 0
	for _, box := range boxes {
		resident += initStatus(t, box, "RssAnon")
	}
	mappedAfter, usedAfter, more := settle()
	if os.Getenv("SANDSHELL_BENCH_STACKS") != "" {
		pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
	fmt.Printf("a box costs %d bytes, in use %d, %d goroutines, its boxd %d bytes\n",
		(mappedAfter-mapped)/idleBoxes, (usedAfter-used)/idleBoxes, (more-goroutines)/idleBoxes,
		resident/idleBoxes)
}
