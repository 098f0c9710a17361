package service

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// A panickingSpecs is a caller's Specs with a method that panics.
type panickingSpecs struct{ Specs }

func (panickingSpecs) Search(context.Context, string, int) ([]*Spec, string, error) {
	panic("no table")
}

// A firstWrite is a writer that keeps the first text that is written to it.
type firstWrite chan string

func (w firstWrite) Write(p []byte) (int, error) {
	select {
	case w <- string(p):
	default:
	}
	return len(p), nil
}

// TestPanics checks that a panic of a caller's function is an error.
func TestPanics(t *testing.T) {
	t.Parallel()
	logged := make(firstWrite, 1)
	s := open(t, uniqueName(t), func(o *Config) {
		o.Specs = panickingSpecs{o.Specs}
		o.Logger = slog.New(slog.NewTextHandler(logged, nil))
	}, small("a", func(s *Spec) { s.Ports = []Port{{"web", 80}} }))
	require.Contains(t, <-logged, "panicked: no table")

	s.url = func(string, Port) string { panic("no address") }
	_, err := s.info(t.Context(), &place.Record{ID: "x", Spec: "a", Status: Running,
		Created: time.Now(),
		Note:    &place.Note{}})
	require.ErrorContains(t, err, "Config.URL panicked: no address")
}
