package remotebox

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// A StockConfig says what a Stock holds.
type StockConfig[T any] struct {
	Size  int                                  // how many are kept ready
	Make  func(ctx context.Context) (T, error) // makes one
	Close func(T)                              // ends one that is not wanted
	// MaxAge is how long one may wait; then it is closed, and another is made. 0 means no limit.
	MaxAge time.Duration
	Logger *slog.Logger
}

// A Stock makes things ahead that take long to make, and hands them out at once. Its methods may be
// called from several goroutines.
type Stock[T any] struct {
	StockConfig[T]
	cancel context.CancelFunc
	done   sync.WaitGroup
	taken  chan struct{} // has a value when one was taken, so that another is made
	mu     sync.Mutex
	ready  []made[T] // the oldest first
}

type made[T any] struct {
	thing T
	at    time.Time
}

// After a failure a Stock pauses for minPause, and twice as long after each further failure, up to
// maxPause.
const (
	minPause = time.Second
	maxPause = time.Minute
)

// NewStock returns a Stock, which starts to make things.
func NewStock[T any](c StockConfig[T]) *Stock[T] {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Stock[T]{StockConfig: c, cancel: cancel, taken: make(chan struct{}, 1)}
	s.done.Go(func() { s.fill(ctx) })
	return s
}

// Take takes the oldest thing that is ready. It does not wait: ok is false if nothing is ready.
func (s *Stock[T]) Take() (thing T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) == 0 {
		return thing, false
	}
	thing = s.ready[0].thing
	s.ready = s.ready[1:]
	select {
	case s.taken <- struct{}{}:
	default:
	}
	return thing, true
}

// Drop takes out the things that gone reports as gone for good or taken by another program, and
// calls end with each. The Stock makes others in their place.
func (s *Stock[T]) Drop(gone func(T) bool, end func(T)) {
	s.mu.Lock()
	var dropped []T
	s.ready = slices.DeleteFunc(s.ready, func(m made[T]) bool {
		if !gone(m.thing) {
			return false
		}
		dropped = append(dropped, m.thing)
		return true
	})
	s.mu.Unlock()
	if len(dropped) > 0 {
		select {
		case s.taken <- struct{}{}:
		default:
		}
	}
	for _, thing := range dropped {
		end(thing)
	}
}

// Ready returns how many things are ready.
func (s *Stock[T]) Ready() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready)
}

// Close stops the making of things, waits for the one that is being made, and closes those that are
// ready.
func (s *Stock[T]) Close() {
	s.cancel()
	s.done.Wait()
	s.mu.Lock()
	rest := s.ready
	s.ready = nil
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, m := range rest {
		all.Go(func() { s.StockConfig.Close(m.thing) })
	}
	all.Wait()
}

// fill makes things, one at a time, until ctx ends.
func (s *Stock[T]) fill(ctx context.Context) {
	pause := minPause
	for ctx.Err() == nil {
		wait := s.expire()
		if s.Ready() >= s.Size {
			select {
			case <-ctx.Done():
			case <-s.taken:
			case <-wait:
			}
			continue
		}
		thing, err := s.Make(ctx)
		if err == nil {
			pause = minPause
			s.mu.Lock()
			s.ready = append(s.ready, made[T]{thing, time.Now()})
			s.mu.Unlock()
			continue
		}
		if ctx.Err() != nil {
			return
		}
		s.Logger.Warn("make a box ahead", "error", err, "again in", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
}

// expire closes the things that are older than MaxAge. The channel gets a value when the next one
// will be too old. If nothing is ready, or there is no MaxAge, the channel is nil.
func (s *Stock[T]) expire() <-chan time.Time {
	if s.MaxAge == 0 {
		return nil
	}
	s.mu.Lock()
	var old []T
	for len(s.ready) > 0 && time.Since(s.ready[0].at) >= s.MaxAge {
		old = append(old, s.ready[0].thing)
		s.ready = s.ready[1:]
	}
	var next <-chan time.Time
	if len(s.ready) > 0 {
		next = time.After(s.MaxAge - time.Since(s.ready[0].at))
	}
	s.mu.Unlock()
	for _, thing := range old {
		s.StockConfig.Close(thing)
	}
	return next
}
