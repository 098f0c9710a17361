package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// Remove removes a container, whatever it does, and returns nil where there is none. It asks again where another is removing it, and where another has paused it
// just after the engine had killed it: what is frozen does not end, until the engine, which knows of the pause by then, kills and thaws it (moby, daemon/kill.go).
func Remove(ctx context.Context, d *client.Client, container string) error {
	for {
		_, err := d.ContainerRemove(ctx, container, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil || errdefs.IsNotFound(err):
			return nil
		case !errdefs.IsConflict(err) && !strings.Contains(err.Error(), "did not receive an exit event"): // the former: "removal … is already in progress"
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
