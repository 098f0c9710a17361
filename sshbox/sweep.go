package sshbox

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// A sweeper sweeps once, beside what else goes on.
type sweeper struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (e *engine) sweeper(ctx context.Context, log *slog.Logger) *sweeper {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &sweeper{cancel, make(chan struct{})}
	go func() {
		defer close(s.done)
		e.sweep(ctx, log)
	}()
	return s
}

func (s *sweeper) stop() {
	s.cancel()
	<-s.done
}

// sweep removes what programs that were killed have left.
func (e *engine) sweep(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := e.reap(ctx, log); err != nil && ctx.Err() == nil {
		log.Debug("remove what is left of boxes", "error", err)
	}
}

// gone reports whether there is certainly no process of that id. Another one of the same id counts as the same.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return true // Windows opens it
	}
	defer p.Release()
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
