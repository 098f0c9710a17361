// Package placetest tests any place.Place: it checks that a Service on it does what package service
// says. Package service/containers runs the tests on a Docker engine, and service/pods runs them on
// a Kubernetes cluster.
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

// Run runs all tests. Each call of open must return a new Place on the same engine or cluster. The
// tests make their boxes from spec. It should be small and have no Lifecycle, and its image needs
// sh, cat and sleep. The tests' services have unique names, and leave nothing behind.
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
		{"Fork", (*suite).fork},
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

// A suite is the state of one test.
type suite struct {
	*testing.T
	spec     service.Spec
	newPlace func(testing.TB) place.Place
	name     string // of the test's services
}

// specOf returns the tests' spec with another ID and Warm.
func (s *suite) specOf(id string, warm int) *service.Spec {
	spec := s.spec
	spec.ID, spec.Warm = id, warm
	return &spec
}

// open makes a service on a Place of its own, as another process would. It is closed at the end of
// the test.
func (s *suite) open(specs ...*service.Spec) *service.Service {
	s.Helper()
	svc, err := service.New(s.config(s.newPlace(s), specs...))
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, svc.Close()) })
	return svc
}

func (s *suite) config(p place.Place, specs ...*service.Spec) service.Config {
	if len(specs) == 0 {
		specs = append(specs, s.specOf("small", 0))
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

// bare returns a Place without a service. It is closed at the end of the test.
func (s *suite) bare() place.Place {
	s.Helper()
	p := s.newPlace(s)
	require.NoError(s, p.Open(s.name, slog.New(slog.DiscardHandler)))
	s.Cleanup(func() { require.NoError(s, p.Close()) })
	return p
}

// cleanup registers a cleanup that removes what the test's services have left. It runs after they
// were closed.
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

// execute executes a command in the main session of a box, and returns its output.
func (s *suite) execute(svc *service.Service, id, command string) string {
	s.Helper()
	box, err := svc.Open(s.Context(), id)
	require.NoError(s, err)
	r, err := box.Execute(s.Context(), command, sandbox.Timeout(30*time.Second))
	require.NoError(s, err)
	return r.Output
}

// record returns the Record of a box.
func (s *suite) record(p place.Place, id string) *place.Record {
	s.Helper()
	records, err := p.List(s.Context(), id)
	require.NoError(s, err)
	require.Len(s, records, 1)
	require.Equal(s, id, records[0].ID)
	return records[0]
}

// unsupported reports whether err is an error. It checks that such an error is
// errors.ErrUnsupported and says why.
func (s *suite) unsupported(err error) bool {
	s.Helper()
	if err == nil {
		return false
	}
	require.ErrorIs(s, err, errors.ErrUnsupported)
	require.Contains(s, err.Error(), ": ", "the error does not say why")
	return true
}
