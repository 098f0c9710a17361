package service

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

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/containers"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// TestMain checks that the tests leave no goroutine and no container behind. Each test checks for
// notes itself.
func TestMain(m *testing.M) {
	if what := os.Getenv("SANDSHELL_TEST_SERVICE"); what != "" {
		runOther(what)
		return
	}
	dockertest.Main(m)
}

var secret = []byte(strings.Repeat("s", minSecret))

// small returns a spec of the smallest box.
func small(id string, change func(*Spec)) *Spec {
	s := &Spec{ID: id, Config: sshbox.Config{Image: dockertest.Busybox, Network: "none"}}
	if change != nil {
		change(s)
	}
	return s
}

var names atomic.Int64

// uniqueName returns the name of a service that no other test has. The boxes and notes of that
// service are removed at the end of the test.
func uniqueName(t testing.TB) string {
	t.Helper()
	d := dockertest.Engine(t, dockertest.Busybox)
	name := fmt.Sprintf("t%dx%d", os.Getpid(), names.Add(1))
	t.Cleanup(func() {
		ctx := context.Background()
		of := client.Filters{}.Add("label", docker.ServiceLabel+"="+name)
		containers, err := d.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: of})
		require.NoError(t, err)
		for _, c := range containers.Items {
			// The engine may be removing the container for a process that was killed.
			eventually(t, "the container is gone", func() bool {
				_, err := d.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true,
					RemoveVolumes: true})
				require.True(t, err == nil || errdefs.IsConflict(err) || errdefs.IsNotFound(err),
					"%v", err)
				return errdefs.IsNotFound(err)
			})
		}
		volumes, err := d.VolumeList(ctx, client.VolumeListOptions{Filters: of})
		require.NoError(t, err)
		for _, v := range volumes.Items {
			_, err := d.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{})
			require.NoError(t, err)
		}
	})
	return name
}

// open makes a service, which is closed at the end of the test.
func open(t testing.TB, name string, change func(*Config), specs ...*Spec) *Service {
	t.Helper()
	store, err := NewSpecs(specs...)
	require.NoError(t, err)
	o := Config{Name: name, Specs: store, Secret: secret, Every: time.Hour,
		Logger: slog.New(slog.NewTextHandler(t.Output(),
			&slog.HandlerOptions{Level: slog.LevelInfo}))}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// placeOn returns the Place of an engine. If d is nil, it is the default engine.
func placeOn(d *client.Client) place.Place {
	return containers.New(containers.Config{Docker: d})
}

// start starts a box.
func start(t testing.TB, s *Service, o StartOptions) *Info {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	i, err := s.Start(ctx, o)
	require.NoError(t, err)
	return i
}

// execute executes a command in the main session of a box, and returns its output.
func execute(t testing.TB, s *Service, id, command string) string {
	t.Helper()
	box, err := s.Open(t.Context(), id)
	require.NoError(t, err)
	r, err := box.Execute(t.Context(), command, sandbox.Timeout(30*time.Second))
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, r.State)
	return r.Output
}

func status(t testing.TB, s *Service, id string) Status {
	t.Helper()
	i, err := s.Get(t.Context(), id)
	if errors.Is(err, ErrNotFound) {
		return ""
	}
	require.NoError(t, err)
	return i.Status
}

// eventually waits until f returns true. what says what f waits for.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(testenv.Limit); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
