package service

import (
	"testing"
	"testing/fstest"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/stretchr/testify/require"
)

// TestWarm checks that a start takes a box from the pool and gives it the owner's environment and
// files, that the pool makes another, and that a box that has died in the pool is not used.
func TestWarm(t *testing.T) {
	t.Parallel()
	d := dockertest.Engine(t, dockertest.Busybox)
	name := uniqueName(t)
	s := open(t, name, nil, small("warm", func(s *Spec) { s.Warm = 1 }))
	ready := func() string { // waits for a box in the pool, and returns its handle
		var handle string
		eventually(t, "the pool is filled", func() bool {
			s.mu.Lock()
			p := s.pools["warm"]
			s.mu.Unlock()
			return p != nil && p.boxes.Ready() == 1
		})
		records, err := s.place.List(t.Context(), "")
		require.NoError(t, err)
		for _, r := range records {
			if r.ID == "" {
				handle = r.Handle
			}
		}
		return handle
	}
	first := ready()
	p, err := s.Search(t.Context(), Query{})
	require.NoError(t, err)
	require.Empty(t, p.Items, "a box in a pool is not found")

	i := start(t, s, StartOptions{ID: "a", Owner: "me", Env: []string{"TOKEN=secret"},
		Files: fstest.MapFS{"file": {Data: []byte("mine")}}})
	require.Equal(t, "me", i.Owner)
	require.Equal(t, first, record(t, s, "a").Handle)
	require.Equal(t, "secret mine\n", execute(t, s, "a", "echo $TOKEN $(cat file)"))
	box, err := s.Open(t.Context(), "a")
	require.NoError(t, err)
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c",
		`[ "$TOKEN" = secret ]`}})
	require.NoError(t, err)
	require.Zero(t, code, "a Run has the environment, too")
	got, err := s.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, i, got)

	second := ready()
	require.NotEqual(t, first, second)
	_, err = d.ContainerKill(t.Context(), second, client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
	start(t, s, StartOptions{ID: "b"})
	require.NotEqual(t, second, record(t, s, "b").Handle)
	require.Equal(t, "\n", execute(t, s, "b", "echo $TOKEN"), "the next owner does not see it")
	_, err = d.ContainerInspect(t.Context(), second, client.ContainerInspectOptions{})
	require.Error(t, err, "the box that had died is removed")

	// A start does not wait for the pool.
	for _, id := range []string{"c", "d"} {
		start(t, s, StartOptions{ID: id})
	}

	// If the spec changes, the boxes in the pool are not used.
	ready()
	require.NoError(t, s.store.(*MemorySpecs).Set(small("warm", func(s *Spec) {
		s.Env = []string{"NEW=1"}
	})))
	start(t, s, StartOptions{ID: "f"})
	require.Equal(t, "1\n", execute(t, s, "f", "echo $NEW"))
	require.NoError(t, s.round(t.Context()))
	records, err := s.place.List(t.Context(), "")
	require.NoError(t, err)
	for _, r := range records {
		require.NotEmpty(t, r.ID, "the pool is gone with the spec's Warm")
	}
}

func record(t *testing.T, s *Service, id string) *place.Record {
	t.Helper()
	r, err := s.find(t.Context(), id)
	require.NoError(t, err)
	require.NotNil(t, r)
	return r
}
