package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// TestRemovePausedInBetween checks that Remove removes a container that was paused just after the
// engine had killed it. Such a container does not end. Docker waits for it for 12 s and gives up.
func TestRemovePausedInBetween(t *testing.T) {
	d := docker(t)
	removals := 0
	e := proxiedEngine(t, d, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		if removals++; removals > 1 {
			return false
		}
		http.Error(w,
			`{"message": "Could not kill running container, cannot remove - tried to kill container, but did not receive an exit event"}`, http.StatusInternalServerError)
		return true
	})
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config:     &container.Config{Image: "sandshell-busybox", Cmd: []string{"sleep", "1000"}},
		HostConfig: &container.HostConfig{NetworkMode: "none"}})
	noError(t, err)
	_, err = d.ContainerStart(t.Context(), created.ID, client.ContainerStartOptions{})
	noError(t, err)
	noError(t, Pause(t.Context(), d, created.ID))
	noError(t, Remove(t.Context(), e.Client, created.ID))
	if removals != 2 {
		t.Errorf("%d removals", removals)
	}
	if _, err := d.ContainerInspect(t.Context(), created.ID,
		client.ContainerInspectOptions{}); !errdefs.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	noError(t, Remove(t.Context(), e.Client, created.ID)) // it no longer exists
}

// TestRemoveSlowly checks that Remove waits for a removal that the engine has begun, even if it
// takes longer than the limit for its begin. To delete installed packages takes a slow disk a
// minute.
func TestRemoveSlowly(t *testing.T) {
	d := docker(t)
	const limit = 200 * time.Millisecond
	for _, c := range []struct {
		state   container.ContainerState
		removed bool
	}{{container.StateRemoving, true}, {container.StateRunning, false}} {
		t.Run(string(c.state), func(t *testing.T) {
			t.Parallel()
			created, err := d.ContainerCreate(t.Context(),
				client.ContainerCreateOptions{Config: &container.Config{Image: "sandshell-busybox"},
					HostConfig: &container.HostConfig{NetworkMode: "none"}})
			noError(t, err)
			t.Cleanup(func() { noError(t, Remove(context.Background(), d, created.ID)) })
			var removals atomic.Int32
			e := proxiedEngine(t, d, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodDelete && removals.Add(1) < 3:
					io.Copy(io.Discard, r.Body) // so that the server sees the client hang up
					<-r.Context().Done()
				case strings.HasSuffix(r.URL.Path, created.ID+"/json"):
					fmt.Fprintf(w, `{"State": {"Status": %q}}`, c.state)
				default:
					return false
				}
				return true
			})
			err = removeWithin(t.Context(), e.Client, created.ID, limit)
			if c.removed {
				noError(t, err)
				_, err = d.ContainerInspect(t.Context(), created.ID,
					client.ContainerInspectOptions{})
				if !errdefs.IsNotFound(err) {
					t.Errorf("it is still there: %v", err)
				}
			} else if !errors.Is(err, context.DeadlineExceeded) || removals.Load() != 1 ||
				!strings.Contains(err.Error(), "not begun the removal within 200ms") {
				t.Errorf("%d removals: %v", removals.Load(), err)
			}
		})
	}
}

// TestRemoveImageGivenUp checks that the removal of a snapshot is finished without an error, though
// its caller gives up when the engine has begun it.
func TestRemoveImageGivenUp(t *testing.T) {
	d := docker(t)
	labels := map[string]string{snapshotLabel: newSnapshotKey()}
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: testImage}})
	noError(t, err)
	defer func() { noError(t, Remove(context.Background(), d, created.ID)) }()
	_, err = d.ContainerCommit(t.Context(), created.ID, client.ContainerCommitOptions{
		Reference: snapshotName(labels), Config: &container.Config{Labels: labels}})
	noError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	e := proxiedEngine(t, d, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			cancel()
		}
		return false
	})
	noError(t, e.RemoveSnapshot(ctx, snapshotName(labels)))
	if _, err := d.ImageInspect(t.Context(), snapshotName(labels)); !errdefs.IsNotFound(err) {
		t.Errorf("the image is still there: %v", err)
	}
	if err := e.removeImage(ctx, testImage); !errors.Is(err, context.Canceled) {
		t.Errorf("a removal that its caller has given up before it began: %v", err)
	}
}
