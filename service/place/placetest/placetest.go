// Package placetest tests any place.Place: that a Service on it does what package service says.
// Package service runs the tests on a Docker engine, and service/pods on a cluster.
package placetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// Run runs all tests. Each call of open returns a new Place; all are on the same engine or cluster.
// The tests make their boxes from spec. It should be small and have no Lifecycle, and its image
// needs sh, cat and sleep. The tests' services have names of their own, and leave nothing behind.
func Run(t *testing.T, spec service.Spec, open func(t testing.TB) place.Place) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"Life", (*suite).life},
		{"Notes", (*suite).notes},
		{"Together", (*suite).together},
		{"Pool", (*suite).pool},
		{"Watch", (*suite).watch},
		{"Cannot", (*suite).cannot},
		{"Failed", (*suite).failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &suite{T: t, spec: spec, newPlace: open, name: fmt.Sprintf("s%dx%d", os.Getpid(),
				names.Add(1))}
			s.cleanup()
			c.test(s)
		})
	}
}

var names atomic.Int64

// A suite is a test's.
type suite struct {
	*testing.T
	spec     service.Spec
	newPlace func(testing.TB) place.Place
	name     string // of its services
}

// another is a spec like the tests' with that ID.
func (s *suite) another(id string, warm int) *service.Spec {
	spec := s.spec
	spec.ID, spec.Warm = id, warm
	return &spec
}

// open makes another service on another Place, as another process would have it. The test's end
// closes it.
func (s *suite) open(specs ...*service.Spec) *service.Service {
	s.Helper()
	svc, err := service.New(s.config(s.newPlace(s), specs...))
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, svc.Close()) })
	return svc
}

func (s *suite) config(p place.Place, specs ...*service.Spec) service.Config {
	if len(specs) == 0 {
		specs = append(specs, s.another("small", 0))
	}
	store, err := service.NewSpecs(specs...)
	require.NoError(s, err)
	return service.Config{
		Place: p, Name: s.name, Specs: store, Secret: []byte(strings.Repeat("s", 32)),
		Every: time.Hour,
		Logger: slog.New(slog.NewTextHandler(s.Output(),
			&slog.HandlerOptions{Level: slog.LevelInfo})),
	}
}

// bare is a Place without a service.
func (s *suite) bare() place.Place {
	s.Helper()
	p := s.newPlace(s)
	require.NoError(s, p.Open(s.name, slog.New(slog.DiscardHandler)))
	s.Cleanup(func() { require.NoError(s, p.Close()) })
	return p
}

// cleanup has the test's end remove what is left by the service's name. It comes after the
// services' own end.
func (s *suite) cleanup() {
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		p := s.newPlace(s)
		require.NoError(s, p.Open(s.name, slog.New(slog.DiscardHandler)))
		records, err := p.List(ctx, "")
		require.NoError(s, err)
		for _, r := range records {
			require.NoError(s, p.Remove(ctx, r.Handle))
			require.NotEmpty(s, r.ID, "a box is left in a pool, though its service was closed")
		}
		require.NoError(s, p.Tidy(ctx))
		left, err := p.List(ctx, "")
		require.NoError(s, err)
		require.Empty(s, left)
		require.NoError(s, p.Close())
	})
}

// start starts a box.
func (s *suite) start(svc *service.Service, o service.StartOptions) *service.Info {
	s.Helper()
	i, err := svc.Start(s.Context(), o)
	require.NoError(s, err)
	return i
}

// says executes a command in the main session of a box.
func (s *suite) says(svc *service.Service, id, command string) string {
	s.Helper()
	box, err := svc.Open(s.Context(), id)
	require.NoError(s, err)
	r, err := box.Execute(s.Context(), command, sandbox.Timeout(30*time.Second))
	require.NoError(s, err)
	return r.Output
}

// record is what a Place knows about a box.
func (s *suite) record(p place.Place, id string) *place.Record {
	s.Helper()
	records, err := p.List(s.Context(), id)
	require.NoError(s, err)
	require.Len(s, records, 1)
	require.Equal(s, id, records[0].ID)
	return records[0]
}

// unsupported checks that an error, if it is one, says that the place cannot do something, and why.
// It reports whether it is.
func (s *suite) unsupported(err error) bool {
	s.Helper()
	if err == nil {
		return false
	}
	require.ErrorIs(s, err, errors.ErrUnsupported)
	require.Contains(s, err.Error(), ": ", "it does not say why")
	return true
}
