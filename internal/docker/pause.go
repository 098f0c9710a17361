package docker

import (
	"context"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// pauseLimit is how long Pause tries again if the runtime cannot freeze a container.
const pauseLimit = 10 * time.Second

// Pause pauses a container. If processes of the container fork while runc freezes them on cgroup
// v1, as on a busy machine, runc gives up after some tries ("unable to freeze",
// libcontainer/cgroups/fs/freezer.go) and thaws the container. Pause then asks again.
func Pause(ctx context.Context, d *client.Client, container string) error {
	for end := time.Now().Add(pauseLimit); ; {
		_, err := d.ContainerPause(ctx, container, client.ContainerPauseOptions{})
		if err == nil || !strings.Contains(err.Error(), "unable to freeze") || ctx.Err() != nil ||
			time.Now().After(end) {
			return err
		}
	}
}

// Unpause resumes a paused container, and returns when the engine reports it as running.
func Unpause(ctx context.Context, d *client.Client, container string) error {
	if _, err := d.ContainerUnpause(ctx, container, client.ContainerUnpauseOptions{}); err != nil {
		return err
	}
	Settle(ctx, d, container)
	return nil
}

// settleLimit is how long Settle waits. Another process may have paused the container again.
const settleLimit = 5 * time.Second

// Settle waits until the engine has handled containerd's events of a pause and an unpause. A commit
// pauses and unpauses too. The engine's calls return before it has handled these events. If the
// pause event is late, the engine reports a running container as paused until the unpause event
// arrives (moby, daemon/monitor.go). The engine handles events in order, so Settle causes one more:
// it executes boxd without arguments, which prints its usage, and waits for the event of its end.
// If no process can be started, the engine may report the pause for a moment longer.
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
		// The engine has not handled the unpause event yet.
		if err == nil || !strings.Contains(err.Error(), "is paused") || !poll(ctx) {
			return
		}
	}
}

// poll waits 5 ms. It reports whether ctx has not ended.
func poll(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(5 * time.Millisecond):
		return true
	}
}
