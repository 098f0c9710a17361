package guard_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/guard"
)

func TestLogger(t *testing.T) {
	guard.Logger(nil).Error("discarded")

	var out bytes.Buffer
	l := guard.Logger(slog.New(slog.NewTextHandler(&out,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
	l.With("a", 1).WithGroup("g").Info("text", "b", 2)
	l.Debug("not wanted")
	require.Equal(t, "level=INFO msg=text a=1 g.b=2\n", out.String())
	require.Same(t, l, guard.Logger(l))

	for _, at := range []string{"Enabled", "Handle", "WithAttrs", "WithGroup"} {
		h := &panics{slog.NewTextHandler(&out, nil), at}
		guard.Logger(slog.New(h)).With("a", 1).WithGroup("g").Info("text")
	}
}

// A panics panics in one of its methods.
type panics struct {
	slog.Handler
	at string
}

func (p *panics) in(method string) {
	if p.at == method {
		panic(method)
	}
}

func (p *panics) Enabled(ctx context.Context, l slog.Level) bool {
	p.in("Enabled")
	return true
}

func (p *panics) Handle(ctx context.Context, r slog.Record) error {
	p.in("Handle")
	return nil
}

func (p *panics) WithAttrs([]slog.Attr) slog.Handler { p.in("WithAttrs"); return p }
func (p *panics) WithGroup(string) slog.Handler      { p.in("WithGroup"); return p }
