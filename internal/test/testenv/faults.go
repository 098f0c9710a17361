package testenv

import (
	"context"
	"log/slog"
	"testing"
)

// Logger returns a logger for a box that fails the test at a record of level Error. The engine logs
// at that level only what cannot happen, and goes on.
func Logger(t testing.TB) *slog.Logger { return slog.New(faults{slog.DiscardHandler, t}) }

type faults struct {
	slog.Handler
	t testing.TB
}

func (f faults) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelError
}

func (f faults) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	f.t.Errorf("the box has logged: %s", text)
	return nil
}

func (f faults) WithAttrs([]slog.Attr) slog.Handler { return f }
func (f faults) WithGroup(string) slog.Handler      { return f }
