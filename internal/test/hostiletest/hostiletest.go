// Package hostiletest tests code that reads what a hostile box sends: too much, or something wrong.
package hostiletest

import (
	"context"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// Heap is how much memory of this program a hostile box may use, beyond what it uses when it is
// idle.
const Heap = 64 << 20

// PeakOf returns the greatest amount of memory that call uses, beyond what was in use before.
func PeakOf(call func()) int64 {
	use := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the default of programs
	runtime.GC()
	idle := use()
	var peak int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			peak = max(peak, use())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	call()
	close(stop)
	<-stopped
	return max(peak-idle, 0)
}

// A Case is a call that reads from a hostile box.
type Case struct {
	Name string
	Call func(ctx context.Context, t *testing.T) error
	Says string        // in the error
	Time time.Duration // of Call's ctx; 0: Call is to return before it ends, which is long
}

// late is how much later than its ctx a call may return, on a busy machine.
const late = 20 * time.Second

// Run runs the case. The call must fail in time, and use no more memory than Heap.
func (c Case) Run(t *testing.T) {
	t.Run(c.Name, func(t *testing.T) {
		limit := c.Time
		if limit == 0 {
			limit = 2 * time.Minute
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		var err error
		began := time.Now()
		peak := PeakOf(func() { err = c.Call(ctx, t) })
		took := time.Since(began)
		t.Logf("%-32s peak above idle %6.1f MiB, %5.2f s: %.120v", t.Name(), float64(peak)/(1<<20),
			took.Seconds(), err)
		if peak > Heap {
			t.Errorf("the call takes %d MiB", peak>>20)
		}
		if err == nil || !strings.Contains(err.Error(), c.Says) {
			t.Errorf("%.1000v, want one that says %q", err, c.Says)
		}
		if c.Time == 0 && ctx.Err() != nil {
			t.Error("the bound was not met: the time was")
		}
		if took > limit+late {
			t.Errorf("the call took %v, and its limit is %v", took, limit)
		}
	})
}

// Endless returns a reader that repeats piece without end.
func Endless(piece string) io.Reader { return &endless{piece: piece} }

type endless struct {
	piece string
	at    int
}

func (e *endless) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		k := copy(p[n:], e.piece[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.piece)
	}
	return len(p), nil
}

// Times returns a reader that repeats piece n times.
func Times(piece string, n int) io.Reader {
	return io.LimitReader(Endless(piece), int64(len(piece)*n))
}
