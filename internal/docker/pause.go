package docker

import (
	"context"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// pauseLimit is how long Pause asks a runtime that cannot freeze a container.
const pauseLimit = 10 * time.Second

// Pause pauses a container. Where its processes multiply while they are to be frozen, as on a busy
// machine, runc on cgroup v1 gives up after some tries ("unable to freeze",
// libcontainer/cgroups/fs/freezer.go), has thawed the container again, and leaves it to its caller
// to ask once more.
func Pause(ctx context.Context, d *client.Client, container string) error {
	for end := time.Now().Add(pauseLimit); ; {
		_, err := d.ContainerPause(ctx, container, client.ContainerPauseOptions{})
		if err == nil || !strings.Contains(err.Error(), "unable to freeze") || ctx.Err() != nil ||
			time.Now().After(end) {
			return err
		}
	}
}

// Unpause has a paused container go on, and returns when the engine has settled that it does.
func Unpause(ctx context.Context, d *client.Client, container string) error {
	if _, err := d.ContainerUnpause(ctx, container, client.ContainerUnpauseOptions{}); err != nil {
		return err
	}
	Settle(ctx, d, container)
	return nil
}

// settleLimit is how long Settle waits, as for a container that another process has paused
// meanwhile.
const settleLimit = 5 * time.Second

// Settle waits until the engine has dealt with what containerd says of a container that the engine
// has paused and unpaused, as it does for a commit, too. Its calls do not wait for that: where the
// word of the pause is late, the engine takes a container that goes on for a paused one, until it
// has the word of the unpause as well (moby, daemon/monitor.go). It deals with one word after the
// other, and the last one now is that a process in the container has ended: boxd, which says how it
// is used. Where none can be started, the engine may tell of the pause for a moment longer.
func Settle(ctx context.Context, d *client.Client, container string) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for {
		created, err := d.ExecCreate(ctx, container, client.ExecCreateOptions{
			Cmd: []string{wire.Path}})
		if err == nil {
			_, err = d.ExecStart(ctx, created.ID, client.ExecStartOptions{Detach: true})
		}
		for running := true; err == nil && running; {
			var inspected client.ExecInspectResult
			inspected, err = d.ExecInspect(ctx, created.ID, client.ExecInspectOptions{})
			running = inspected.Running && poll(ctx)
		}
		// so the engine says until it has the other word
		if err == nil || !strings.Contains(err.Error(), "is paused") || !poll(ctx) {
			return
		}
	}
}

// poll waits a little; it reports false if ctx has ended.
func poll(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(5 * time.Millisecond):
		return true
	}
}
