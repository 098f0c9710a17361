package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// ServiceLabel is a label of boxes that package service has made.
const ServiceLabel = remotebox.ServiceLabel

// Reap removes containers that ended owners have left, if the containers have ended too or were
// never started. It leaves a service's container that has ended. It also removes the containers
// that this process could not remove earlier, whether they run or not, and temporary snapshots that
// ended processes have left. Reap returns how many containers it has removed.
func (e *Engine) Reap(ctx context.Context, log *slog.Logger) (removed int, err error) {
	boxes, err := e.List(ctx)
	if err != nil {
		return 0, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	seen := map[string]bool{}
	for _, b := range boxes {
		seen[b.Box] = true
		orphan := b.SameHost() && orphans.Has(b.Box)
		if !orphan && !b.Abandoned(b.phase(), now.Sub(b.Created)) {
			continue
		}
		if log != nil {
			log.Debug("removing what is left of a box", "container", b.ID, "name", b.Name, "host",
				b.Host, "pid", b.PID)
		}
		// Without Force the engine refuses if the container has been started since.
		_, err := e.ContainerRemove(ctx, b.ID, client.ContainerRemoveOptions{RemoveVolumes: true,
			Force: orphan})
		switch {
		case err == nil:
			removed++
			orphans.Remove(b.Box)
		case errdefs.IsNotFound(err), errdefs.IsConflict(err): // another program is removing it
		default:
			errs = append(errs, fmt.Errorf("remove container %s: %w", b.Name, err))
		}
	}
	orphans.Forget(seen)
	errs = append(errs, e.reapSnapshots(ctx, now))
	return removed, errors.Join(errs...)
}

// phase says how far the container has got.
func (l Listed) phase() remotebox.Phase {
	switch l.State {
	case "exited", "dead":
		return remotebox.Ended
	case "created":
		return remotebox.NotStarted
	}
	return remotebox.Running
}

// now returns the engine's time, which may differ from this machine's.
func (e *Engine) now(ctx context.Context) (time.Time, error) {
	r, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the engine for its time: %w", err)
	}
	now, err := time.Parse(time.RFC3339Nano, r.Info.SystemTime)
	if err != nil {
		return time.Time{}, fmt.Errorf("the engine's time: %w", err)
	}
	return now, nil
}
