//go:build linux

package sshbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// TestSoak has many boxes work for a long time, and then makes and closes many. No byte is lost,
// and the program's descriptors, memory and goroutines do not grow. "make soak" runs it.
func TestSoak(t *testing.T) {
	testenv.NeedsFull(t, "it works for a quarter of an hour; make soak runs it alone")
	testEngine(t)
	s := &soak{t: t, boxes: envInt("SOAK_BOXES", 100), rounds: envInt("SOAK_ROUNDS", 300),
		length: 10 * time.Minute}
	if text := os.Getenv("SOAK_TIME"); text != "" {
		var err error
		s.length, err = time.ParseDuration(text)
		noError(t, err)
	}
	s.printf("%-10s %7s %9s %11s %10s %7s\n", "", "boxes", "calls", "descriptors", "goroutines",
		"MiB")
	first, err := New(t.Context(), s.config()) // so that what is allocated once is there
	noError(t, err)
	noError(t, first.Close())
	before := s.measure("begin", 0)

	boxes := make([]*DockerSSHBox, s.boxes)
	s.atOnce(s.boxes, 8, func(i int) {
		var err error
		boxes[i], err = New(t.Context(), s.config())
		if err != nil {
			t.Errorf("box %d: %v", i, err)
		}
	})
	defer s.atOnce(s.boxes, 8, func(i int) {
		if boxes[i] != nil {
			boxes[i].Close()
		}
	})
	if t.Failed() {
		return
	}
	calls := s.work(boxes, s.length/10) // each box does everything at least once, at its full size
	early := s.measure("early", s.boxes)
	calls += s.work(boxes, s.length*9/10)
	late := s.measure("late", s.boxes)
	s.wantNoGrowth("at work", early, late, s.boxes)
	if calls < int64(s.boxes) {
		t.Errorf("only %d calls in %d boxes: the machine is too busy for this test", calls, s.boxes)
	}
	s.atOnce(s.boxes, 8, func(i int) {
		if err := boxes[i].Close(); err != nil {
			t.Errorf("close box %d: %v", i, err)
		}
		boxes[i] = nil // so that its memory is freed
	})
	closed := s.measure("closed", 0)
	before.memory += s.boxes * endedGoroutines
	s.wantNoGrowth("closed", before, closed, 0)

	s.makeAndClose(s.rounds / 10)
	early = s.measure("rounds", 0)
	s.makeAndClose(s.rounds - s.rounds/10)
	late = s.measure("end", 0)
	s.wantNoGrowth("after New and Close", early, late, 0)
	noContainers(t)
}

// endedGoroutines is how many bytes the Go runtime may keep, for later ones, of the goroutines that
// a box has had: half a KiB each, which pprof shows as runtime.mallocgc.
const endedGoroutines = 32 << 10

// envInt returns the number in a variable of the environment, or usual.
func envInt(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// A soak is a run of TestSoak.
type soak struct {
	t             *testing.T
	boxes, rounds int
	length        time.Duration
	calls         atomic.Int64
}

func (s *soak) printf(format string, args ...any) { fmt.Fprintf(os.Stdout, format, args...) }

func (s *soak) config() Config { return Config{Image: testImage, Network: "none"} }

// atOnce calls f for each number below n, with at most together calls at the same time.
func (s *soak) atOnce(n, together int, f func(i int)) {
	var wg sync.WaitGroup
	turns := make(chan struct{}, together)
	for i := range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			f(i)
		})
	}
	wg.Wait()
}

// makeAndClose makes and closes n boxes.
func (s *soak) makeAndClose(n int) {
	s.atOnce(n, 2, func(i int) {
		box, err := New(s.t.Context(), s.config())
		if err != nil {
			s.t.Errorf("new: %v", err)
			return
		}
		r, err := box.Execute(s.t.Context(), "echo $((6*7))")
		if err != nil || r.Output != "42\n" {
			s.t.Errorf("a command in a new box: %+v, %v", r, err)
		}
		if err := box.Close(); err != nil {
			s.t.Errorf("close: %v", err)
		}
		s.calls.Add(3)
	})
}

// A usage is what the test program uses. memory is in bytes.
type usage struct{ descriptors, goroutines, memory int }

// measure waits until the program's usage does not change, and prints and returns it.
func (s *soak) measure(when string, boxes int) (u usage) {
	for range 20 { // goroutines and connections end a moment after their boxes
		runtime.GC()
		debug.FreeOSMemory()
		entries, err := os.ReadDir("/proc/self/fd")
		noError(s.t, err)
		samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"},
			{Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(samples)
		now := usage{len(entries), runtime.NumGoroutine(),
			int(samples[0].Value.Uint64() + samples[1].Value.Uint64())}
		if now.descriptors == u.descriptors && now.goroutines == u.goroutines {
			u = now
			break
		}
		u = now
		time.Sleep(100 * time.Millisecond)
	}
	s.printf("%-10s %7d %9d %11d %10d %7.1f\n", when, boxes, s.calls.Load(), u.descriptors,
		u.goroutines, float64(u.memory)/(1<<20))
	return u
}

// wantNoGrowth expects that no usage has grown.
func (s *soak) wantNoGrowth(what string, before, after usage, boxes int) {
	for _, more := range before.grown(after, boxes) {
		s.t.Errorf("%s: usage grew by %s", what, more)
	}
}

// grown describes each usage that has grown by more than the calls use that are running in so many
// boxes.
func (u usage) grown(after usage, boxes int) (more []string) {
	if d := after.descriptors - u.descriptors; d > 4+boxes/10 {
		more = append(more, fmt.Sprint(d, " descriptors"))
	}
	if d := after.goroutines - u.goroutines; d > 8+boxes/5 {
		more = append(more, fmt.Sprint(d, " goroutines"))
	}
	if d := after.memory - u.memory; d > 2<<20+boxes*64<<10 {
		more = append(more, fmt.Sprint(d>>10, " KiB"))
	}
	return more
}

// work has each box work for this time, with pauses like those between a model's calls. It returns
// the number of calls.
func (s *soak) work(boxes []*DockerSSHBox, length time.Duration) int64 {
	begin := s.calls.Load()
	end := time.Now().Add(length)
	var wg sync.WaitGroup
	for i, box := range boxes {
		wg.Go(func() {
			w := &worker{s: s, box: box, r: rand.New(rand.NewPCG(uint64(i), 1)), dir: s.t.TempDir()}
			for w.first = true; w.first || time.Now().Before(end); w.first = false {
				for _, task := range []func(context.Context) error{w.countUp, w.printLines,
					w.answerPrompt, w.runCat, w.copyFile, w.readLog, w.interruptSleep} {
					ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
					err := task(ctx)
					cancel()
					if err != nil {
						s.t.Errorf("box %d: %v", i, err)
						return
					}
					s.calls.Add(1)
					// A pause between calls, not synchronisation.
					time.Sleep(time.Duration(w.r.IntN(200)) * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	return s.calls.Load() - begin
}

// TestSoakNotices shows that growth of each usage exceeds the bounds of TestSoak.
func TestSoakNotices(t *testing.T) {
	one := usage{descriptors: 10, goroutines: 10, memory: 10 << 20}
	for _, worse := range []usage{{60, 10, 10 << 20}, {10, 60, 10 << 20}, {10, 10, 40 << 20}} {
		require.Len(t, one.grown(worse, 100), 1, "%+v", worse)
	}
}
