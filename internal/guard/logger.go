package guard

import (
	"context"
	"log/slog"
)

// Logger returns a logger that passes its records to l's handler, a caller's. If the handler
// panics, the record is lost. If l is nil, the logger discards everything.
func Logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	if _, guarded := l.Handler().(handler); guarded {
		return l
	}
	return slog.New(handler{l.Handler()})
}

type handler struct{ of slog.Handler }

const theLogger = "the Logger's handler"

// Enabled implements slog.Handler.
func (h handler) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	_ = Call(theLogger, func() error {
		enabled = h.of.Enabled(ctx, level)
		return nil
	})
	return enabled
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	return Call(theLogger, func() error { return h.of.Handle(ctx, r) })
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func() slog.Handler { return h.of.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return h.with(func() slog.Handler { return h.of.WithGroup(name) })
}

func (h handler) with(f func() slog.Handler) slog.Handler {
	with := h
	_ = Call(theLogger, func() error {
		with.of = f()
		return nil
	})
	return with
}
