package sshbox

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/sandshell/sandshell/sandbox"
)

// TestAttachRaces attaches several programs at the same moment. One of them gets the box. The
// others get an error that says that the box is taken.
func TestAttachRaces(t *testing.T) {
	t.Parallel()
	testEngine(t)
	ctx := testContext(t)
	box, err := New(ctx, Config{Image: testImage, Network: "none", Keep: true})
	noError(t, err)
	defer box.Close()
	_, err = box.Execute(ctx, "X=kept")
	noError(t, err)
	id := box.ContainerID()
	for range 3 {
		var mu sync.Mutex
		var attached []*DockerSSHBox
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				other, err := Engine{}.Attach(ctx, id)
				if err != nil {
					wantLost(t, "Attach", err, sandbox.LostTaken)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				attached = append(attached, other)
			})
		}
		all.Wait()
		var owners int
		for _, other := range attached {
			r, err := other.Execute(ctx, "echo $X")
			if err == nil {
				owners++
				wantExited(t, r, err, "kept\n")
				continue
			}
			wantLost(t, "Execute", err, sandbox.LostTaken)
		}
		if owners != 1 {
			t.Errorf("%d programs have the box, want 1", owners)
		}
		for _, other := range attached {
			noError(t, other.Detach())
		}
	}
	last, err := Engine{}.Attach(ctx, id)
	noError(t, err)
	noError(t, last.Close())
}

// TestAttachRacesRemoval shows that Attach returns a LostError if the box is removed, or ends,
// meanwhile.
func TestAttachRacesRemoval(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	ctx := testContext(t)
	causes := []sandbox.LostCause{sandbox.LostRemoved}
	if dockertest.Podman(t, d) { // Podman does not say that it has asked a container to end
		causes = append(causes, sandbox.LostEnded)
	}
	for range 4 {
		box, err := New(ctx, Config{Image: testImage, Network: "none", Keep: true})
		noError(t, err)
		var removal sync.WaitGroup
		removal.Go(func() {
			time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
			_, err := d.ContainerRemove(ctx, box.ContainerID(),
				client.ContainerRemoveOptions{Force: true})
			noError(t, err)
		})
		other, err := Engine{}.Attach(ctx, box.ContainerID())
		removal.Wait()
		if err == nil {
			_, err = other.Execute(ctx, "true")
			noError(t, other.Close())
		}
		wantLost(t, "Attach", err, causes...)
		noError(t, box.Close())
	}
	_, err := Engine{}.Attach(ctx, "sandshell-none-of-that-name")
	wantLost(t, "Attach", err, sandbox.LostRemoved)
}

// TestAttachCut cuts the engine's connections during Attach. Attach notices soon, and its error is
// not that of the caller's context.
func TestAttachCut(t *testing.T) {
	t.Parallel()
	proxy := newEngineProxy(t)
	ctx := testContext(t)
	box := proxy.box(t, func(config *Config) { config.Keep = true })
	d, err := client.New(client.WithHost("unix://" + proxy.path))
	noError(t, err)
	defer d.Close()
	id := box.ContainerID()
	noError(t, box.Detach())
	for range 10 {
		var cut sync.WaitGroup
		cut.Go(func() {
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
			proxy.Cut()
		})
		other, err := Engine{Docker: d}.Attach(ctx, id)
		cut.Wait()
		if err != nil {
			wantLost(t, "Attach", err, sandbox.LostConnection)
			continue
		}
		r, err := other.Execute(ctx, "echo there")
		wantExited(t, r, err, "there\n")
		noError(t, other.Detach())
	}
	last, err := Engine{}.Attach(ctx, id)
	noError(t, err)
	noError(t, last.Close())
}

// wantLost expects err to be a LostError with one of the causes.
func wantLost(t *testing.T, what string, err error, causes ...sandbox.LostCause) {
	t.Helper()
	var lost *sandbox.LostError
	if !errors.As(err, &lost) || !slices.Contains(causes, lost.Cause) ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: %v, want a LostError of cause %q", what, err, causes)
	}
}
