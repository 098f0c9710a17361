package service

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// A broken is a store of a program's own.
type broken struct{ Specs }

func (broken) Search(context.Context, string, int) ([]*Spec, string, error) { panic("no table") }

// told is a slog.Handler's writer, for one message.
type told chan string

func (t told) Write(p []byte) (int, error) {
	select {
	case t <- string(p):
	default:
	}
	return len(p), nil
}

// What panics in a goroutine of the service's is an error.
func TestPanics(t *testing.T) {
	t.Parallel()
	said := make(told, 1)
	s := open(t, aName(t), func(o *Config) {
		o.Specs = broken{o.Specs}
		o.Logger = slog.New(slog.NewTextHandler(said, nil))
	}, small("a", func(s *Spec) { s.Ports = []Port{{"web", 80}} }))
	require.Contains(t, <-said, "panicked: no table")

	s.url = func(string, Port) string { panic("no address") }
	_, err := s.info(t.Context(), &place.Record{ID: "x", Spec: "a", Status: Running,
		Created: time.Now(),
		Note:    &place.Note{}})
	require.ErrorContains(t, err, "Config.URL panicked: no address")
}
