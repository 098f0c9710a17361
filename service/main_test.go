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
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// TestMain checks that the tests leave no goroutine and no container behind; each test's end looks
// for notes.
func TestMain(m *testing.M) {
	if what := os.Getenv("SANDSHELL_TEST_SERVICE"); what != "" {
		other(what)
		return
	}
	dockertest.Main(m)
}

var secret = []byte(strings.Repeat("s", minSecret))

// small is a spec of the smallest box.
func small(id string, change func(*Spec)) *Spec {
	s := &Spec{ID: id, Config: sshbox.Config{Image: dockertest.Busybox, Network: "none"}}
	if change != nil {
		change(s)
	}
	return s
}

var names atomic.Int64

// aName returns the name of a service that nobody else has; the test's end removes all that is
// there by that name.
func aName(t testing.TB) string {
	t.Helper()
	d := dockertest.Engine(t, dockertest.Busybox)
	name := fmt.Sprintf("t%dx%d", os.Getpid(), names.Add(1))
	t.Cleanup(func() {
		ctx := context.Background()
		of := client.Filters{}.Add("label", docker.ServiceLabel+"="+name)
		containers, err := d.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: of})
		require.NoError(t, err)
		for _, c := range containers.Items {
			// the engine may be removing it for a process that was killed
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

// open makes a service of that name, which the test's end closes.
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

// start starts a box.
func start(t testing.TB, s *Service, o StartOptions) *Info {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	i, err := s.Start(ctx, o)
	require.NoError(t, err)
	return i
}

// says executes a command in the main session of a box.
func says(t testing.TB, s *Service, id, command string) string {
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

// eventually waits for what is to come true by itself.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to that: %s", what)
		}
	}
}
