// Package warm makes things ahead that take long to make, and hands them out at once.
package warm

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Config says what a Pool holds.
type Config[T any] struct {
	Size  int                                  // how many are kept ready
	Make  func(ctx context.Context) (T, error) // makes one
	Close func(T)                              // ends one that is not wanted
	// one that has waited longer is closed, and another made. 0: any age
	MaxAge time.Duration
	Logger *slog.Logger
}

// A Pool keeps things ready. Its methods may be called from several goroutines.
type Pool[T any] struct {
	Config[T]
	cancel context.CancelFunc
	done   sync.WaitGroup
	taken  chan struct{} // something was taken: make another
	mu     sync.Mutex
	ready  []made[T] // the oldest first
}

type made[T any] struct {
	thing T
	at    time.Time
}

// retryAfter is the pause after a failure, which doubles up to retryMost.
const (
	retryAfter = time.Second
	retryMost  = time.Minute
)

// New starts to fill a pool.
func New[T any](c Config[T]) *Pool[T] {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool[T]{Config: c, cancel: cancel, taken: make(chan struct{}, 1)}
	p.done.Go(func() { p.fill(ctx) })
	return p
}

// Take takes one that is ready. It does not wait.
func (p *Pool[T]) Take() (thing T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready) == 0 {
		return thing, false
	}
	thing = p.ready[0].thing
	p.ready = p.ready[1:]
	select {
	case p.taken <- struct{}{}:
	default:
	}
	return thing, true
}

// Drop takes those that are gone for good, or somebody else's by now, and has each closed by end.
// Others are made for them.
func (p *Pool[T]) Drop(gone func(T) bool, end func(T)) {
	p.mu.Lock()
	var dropped []T
	p.ready = slices.DeleteFunc(p.ready, func(m made[T]) bool {
		if !gone(m.thing) {
			return false
		}
		dropped = append(dropped, m.thing)
		return true
	})
	p.mu.Unlock()
	if len(dropped) > 0 {
		select {
		case p.taken <- struct{}{}:
		default:
		}
	}
	for _, thing := range dropped {
		end(thing)
	}
}

// Ready is how many are ready.
func (p *Pool[T]) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)
}

// Close ends the filling, and closes what is ready.
func (p *Pool[T]) Close() {
	p.cancel()
	p.done.Wait()
	p.mu.Lock()
	rest := p.ready
	p.ready = nil
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, m := range rest {
		all.Go(func() { p.Config.Close(m.thing) })
	}
	all.Wait()
}

// fill makes things, one at a time, until ctx ends.
func (p *Pool[T]) fill(ctx context.Context) {
	pause := retryAfter
	for ctx.Err() == nil {
		wait := p.expire()
		if p.Ready() >= p.Size {
			select {
			case <-ctx.Done():
			case <-p.taken:
			case <-wait:
			}
			continue
		}
		thing, err := p.Make(ctx)
		if err == nil {
			pause = retryAfter
			p.mu.Lock()
			p.ready = append(p.ready, made[T]{thing, time.Now()})
			p.mu.Unlock()
			continue
		}
		if ctx.Err() != nil {
			return
		}
		p.Logger.Warn("make a box ahead", "error", err, "again in", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, retryMost)
		}
	}
}

// expire closes what has waited for too long. The channel says when the next will have.
func (p *Pool[T]) expire() <-chan time.Time {
	if p.MaxAge == 0 {
		return nil
	}
	p.mu.Lock()
	var old []T
	for len(p.ready) > 0 && time.Since(p.ready[0].at) >= p.MaxAge {
		old = append(old, p.ready[0].thing)
		p.ready = p.ready[1:]
	}
	var next <-chan time.Time
	if len(p.ready) > 0 {
		next = time.After(p.MaxAge - time.Since(p.ready[0].at))
	}
	p.mu.Unlock()
	for _, thing := range old {
		p.Config.Close(thing)
	}
	return next
}
