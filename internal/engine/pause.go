package engine

import (
	"context"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// pauseLimit is how long Pause asks a runtime that cannot freeze a container.
const pauseLimit = 10 * time.Second

// Pause pauses a container. Where its processes multiply while they are to be frozen, as on a busy machine, runc on cgroup v1 gives up after some tries ("unable to freeze",
// libcontainer/cgroups/fs/freezer.go), has thawed the container again, and leaves it to its caller to ask once more.
func Pause(ctx context.Context, d *client.Client, container string) error {
	for end := time.Now().Add(pauseLimit); ; {
		_, err := d.ContainerPause(ctx, container, client.ContainerPauseOptions{})
		if err == nil || !strings.Contains(err.Error(), "unable to freeze") || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}
