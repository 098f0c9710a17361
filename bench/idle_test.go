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
	"runtime/pprof"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/sshbox"
)

// idleBoxes is how many boxes share what one costs.
const idleBoxes = 10

// BenchmarkIdle is what one idle box in a container costs this program, in memory and goroutines, and its boxd, in resident memory of its own:
// the program itself is on the machine once for all boxes.
func BenchmarkIdle(b *testing.B) {
	engine(b)
	cmd := exec.Command(os.Args[0], "-test.run=^TestIdleBoxes$", "-test.v") // in a process of its own
	cmd.Env = append(os.Environ(), "SANDSHELL_BENCH_PLACE=idle")
	out, err := cmd.CombinedOutput()
	i := bytes.Index(out, []byte("a box costs "))
	if err != nil || i < 0 {
		b.Fatalf("%v: %s", err, out)
	}
	var memory, goroutines, boxd float64
	if _, err := fmt.Sscanf(string(out[i:]), "a box costs %g bytes %g goroutines, its boxd %g bytes", &memory, &goroutines, &boxd); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	report := func(name string, ours, most float64, more func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(ours, "ours-B")
			b.ReportMetric(most, "max-more-B")
			b.ReportMetric(0, "ns/op")
			more(b)
		})
	}
	report("program", memory, 200<<10, func(b *testing.B) {
		b.ReportMetric(goroutines, "goroutines")
		b.ReportMetric(8, "max-goroutines")
	})
	report("boxd", boxd, 6<<20, func(*testing.B) {})
}

// TestIdleBoxes is the process of BenchmarkIdle.
func TestIdleBoxes(t *testing.T) {
	if os.Getenv("SANDSHELL_BENCH_PLACE") != "idle" {
		t.Skip("no test by itself: BenchmarkIdle runs it, as a process of its own: make bench")
	}
	start := func() *sshbox.DockerSSHBox {
		box, err := sshbox.New(context.Background(), sshbox.Config{Image: testImage, Network: "none"})
		noError(t, err)
		t.Cleanup(func() { box.Close() })
		execute(t, box, "sleep 0.1; echo hi")
		return box
	}
	settle := func() (memory uint64, goroutines int) {
		runtime.GC()
		debug.FreeOSMemory()
		return runtimeMemory(), runtime.NumGoroutine()
	}
	start() // what comes once
	memory, goroutines := settle()
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
	after, more := settle()
	if os.Getenv("SANDSHELL_BENCH_STACKS") != "" {
		pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
	}
	fmt.Printf("a box costs %d bytes %d goroutines, its boxd %d bytes\n", (after-memory)/idleBoxes, (more-goroutines)/idleBoxes, resident/idleBoxes)
}
