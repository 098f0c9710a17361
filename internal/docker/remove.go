package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// removeLimit is how long the engine may take to answer, or to begin a removal.
const removeLimit = 30 * time.Second

// Remove removes a container and its anonymous volumes, whether it runs or not. If there is no such
// container, it returns nil. Remove does not end with ctx, because a removal that has begun should
// be finished. While the engine is removing the container, Remove waits for up to ten times
// removeLimit: on a slow disk, the deletion of what a setup has installed can take a minute.
func Remove(ctx context.Context, d *client.Client, id string) error {
	return removeWithin(ctx, d, id, removeLimit)
}

func removeWithin(ctx context.Context, d *client.Client, id string, limit time.Duration) error {
	var err error
	for range 10 {
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		err = remove(try, d, id)
		late := try.Err() != nil
		cancel()
		if err == nil || !late {
			return err
		}
		if !beingRemoved(ctx, d, id) {
			return fmt.Errorf("the engine has not begun the removal within %v: %w", limit, err)
		}
	}
	return fmt.Errorf("the removal takes longer than %v: %w", 10*limit, err)
}

// remove asks again in two cases: another program is removing the container, or another program has
// paused it just after the engine has killed it. Frozen processes do not end. When asked again, the
// engine knows of the pause, so it kills and thaws the container (moby, daemon/kill.go).
func remove(ctx context.Context, d *client.Client, id string) error {
	for {
		_, err := d.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true,
			RemoveVolumes: true})
		switch {
		case err == nil || errdefs.IsNotFound(err):
			return nil
		case !errdefs.IsConflict(err) && !strings.Contains(err.Error(),
			"did not receive an exit event"):
			// A conflict is "removal … is already in progress".
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctxerr.Of(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// beingRemoved reports whether the engine is removing the container, or has removed it.
func beingRemoved(ctx context.Context, d *client.Client, id string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	inspected, err := d.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	return errdefs.IsNotFound(err) || err == nil && inspected.Container.State != nil &&
		inspected.Container.State.Status == container.StateRemoving
}

// removeImage removes an image, and its parents that have no name and that nothing uses. Once it
// has begun, it does not end with ctx: an engine may break off a removal whose caller has gone,
// when the image has only lost its name.
func (e *Engine) removeImage(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*removeLimit)
	defer cancel()
	_, err := e.ImageRemove(ctx, name, client.ImageRemoveOptions{PruneChildren: true})
	return err
}
