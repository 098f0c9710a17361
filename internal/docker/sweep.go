package docker

import (
	"context"
	"log/slog"
	"time"
)

// A Sweeper removes, once and in the background, what killed programs have left.
type Sweeper struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Sweep starts a Sweeper, which calls also besides. Its Stop is to be called before the engine is
// closed.
func (e *Engine) Sweep(ctx context.Context, log *slog.Logger, also func()) *Sweeper {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Sweeper{cancel, make(chan struct{})}
	go func() {
		defer close(s.done)
		defer e.rest()
		also()
		e.sweep(ctx, log)
	}()
	return s
}

// Stop ends the sweeping and waits for its goroutine.
func (s *Sweeper) Stop() {
	s.cancel()
	<-s.done
}

func (e *Engine) sweep(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := e.Reap(ctx, log); err != nil && ctx.Err() == nil {
		log.Debug("remove what is left of boxes", "error", err)
	}
}
