package docker

import (
	"context"
	"log/slog"
	"time"
)

// A Sweeper removes in the background what killed programs have left. It does so once.
type Sweeper struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Sweep starts a Sweeper, which first calls before and then Reap. The caller stops the Sweeper
// before it closes the engine.
func (e *Engine) Sweep(ctx context.Context, log *slog.Logger, before func()) *Sweeper {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Sweeper{cancel, make(chan struct{})}
	go func() {
		defer close(s.done)
		defer e.closeIdle()
		before()
		e.sweep(ctx, log)
	}()
	return s
}

// Stop cancels the sweep and waits until its goroutine has ended.
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
