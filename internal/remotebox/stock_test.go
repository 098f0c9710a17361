package remotebox

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// things makes and closes numbers for a Stock.
type things struct {
	mu           sync.Mutex
	made, closed []int
	fails        int // how many further calls of make fail
}

func (f *things) make(ctx context.Context) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(100 * time.Millisecond):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return 0, errors.New("not now")
	}
	f.made = append(f.made, len(f.made)+1)
	return len(f.made), nil
}

func (f *things) close(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = append(f.closed, n)
}

// ended returns the things that have been closed.
func (f *things) ended() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.closed)
}

func stock(f *things, c StockConfig[int]) *Stock[int] {
	c.Make, c.Close, c.Logger = f.make, f.close, slog.New(slog.DiscardHandler)
	return NewStock(c)
}

func TestPoolStock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &things{}
		p := stock(f, StockConfig[int]{Size: 2})
		if _, ok := p.Take(); ok {
			t.Error("Take returned a thing before one was made")
		}
		time.Sleep(time.Second)
		if n := p.Ready(); n != 2 {
			t.Errorf("%d are ready", n)
		}
		for want := 1; want <= 2; want++ {
			if n, ok := p.Take(); n != want || !ok {
				t.Errorf("took %d, %v; want the oldest, %d", n, ok, want)
			}
		}
		if _, ok := p.Take(); ok {
			t.Error("Take returned a thing from an empty stock")
		}
		time.Sleep(time.Second)
		p.Take()
		p.Close()
		if _, ok := p.Take(); ok || !slices.Equal(f.ended(), []int{4}) {
			t.Errorf("closed %v", f.ended())
		}
	})
}

// TestPoolStockAge checks that things older than MaxAge are closed and replaced.
func TestPoolStockAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &things{}
		p := stock(f, StockConfig[int]{Size: 2, MaxAge: time.Hour})
		time.Sleep(59 * time.Minute)
		if len(f.ended()) > 0 {
			t.Errorf("closed %v too early", f.ended())
		}
		time.Sleep(2 * time.Minute)
		if !slices.Equal(f.ended(), []int{1, 2}) || p.Ready() != 2 {
			t.Errorf("closed %v, %d ready", f.ended(), p.Ready())
		}
		p.Close()
	})
}

// TestPoolStockFailures checks that a Stock tries again after failures, with growing pauses. Close
// does not wait for a pause.
func TestPoolStockFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &things{fails: 3}
		p := stock(f, StockConfig[int]{Size: 1})
		time.Sleep(7 * time.Second) // pauses of 1, 2 and 4
		if p.Ready() != 0 {
			t.Error("it did not pause")
		}
		time.Sleep(time.Second)
		if p.Ready() != 1 {
			t.Error("it has given up")
		}
		f.mu.Lock()
		f.fails = 1000
		f.mu.Unlock()
		p.Take()
		time.Sleep(time.Hour)
		began := time.Now()
		p.Close()
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
	})
}

// TestPoolStockDrop checks that things that another program has taken are dropped and replaced.
func TestPoolStockDrop(t *testing.T) {
	var n atomic.Int64
	p := NewStock(StockConfig[int64]{Size: 2, Make: func(context.Context) (int64, error) {
		return n.Add(1), nil
	}, Close: func(int64) {}, Logger: slog.New(slog.DiscardHandler)})
	defer p.Close()
	require.Eventually(t, func() bool { return p.Ready() == 2 }, testenv.Limit, time.Millisecond)
	var ended []int64
	p.Drop(func(i int64) bool { return i == 1 }, func(i int64) { ended = append(ended, i) })
	require.Equal(t, []int64{1}, ended)
	require.Eventually(t, func() bool { return p.Ready() == 2 }, testenv.Limit, time.Millisecond)
	first, ok := p.Take()
	require.True(t, ok)
	require.Equal(t, int64(2), first)
}
