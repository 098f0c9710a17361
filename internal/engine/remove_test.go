package engine

import (
	"net/http"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// What was paused when the engine had just killed it does not end: Docker waits for it, for 12 s, and gives up.
func TestRemovePausedMeanwhile(t *testing.T) {
	d := docker(t)
	removals := 0
	e := otherwise(t, d, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		if removals++; removals > 1 {
			return false
		}
		http.Error(w, `{"message": "Could not kill running container, cannot remove - tried to kill container, but did not receive an exit event"}`, http.StatusInternalServerError)
		return true
	})
	created, err := d.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: &container.Config{Image: "sandshell-busybox", Cmd: []string{"sleep", "1000"}}, HostConfig: &container.HostConfig{NetworkMode: "none"}})
	noError(t, err)
	_, err = d.ContainerStart(t.Context(), created.ID, client.ContainerStartOptions{})
	noError(t, err)
	noError(t, Pause(t.Context(), d, created.ID))
	noError(t, Remove(t.Context(), e.Client, created.ID))
	if removals != 2 {
		t.Errorf("%d removals", removals)
	}
	if _, err := d.ContainerInspect(t.Context(), created.ID, client.ContainerInspectOptions{}); !errdefs.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
	noError(t, Remove(t.Context(), e.Client, created.ID)) // there is none any more
}
