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

// removeLimit is how long the engine may take to begin a removal, or to answer.
const removeLimit = 30 * time.Second

// Remove removes a container, whatever it does, with its anonymous volumes, and returns nil where
// there is none. Once begun it is better done: it does not end with ctx. While the engine says that
// it is removing the container, Remove waits for it, for up to ten times removeLimit: where a disk
// is slow, what setups have installed takes it a minute to delete.
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
			return fmt.Errorf("the engine has not begun to in %v: %w", limit, err)
		}
	}
	return fmt.Errorf("the engine is at it for longer than %v: %w", 10*limit, err)
}

// remove asks again where another is removing the container, and where another has paused it just
// after the engine had killed it: what is frozen does not end, until the engine, which knows of the
// pause by then, kills and thaws it (moby, daemon/kill.go).
func remove(ctx context.Context, d *client.Client, id string) error {
	for {
		_, err := d.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true,
			RemoveVolumes: true})
		switch {
		case err == nil || errdefs.IsNotFound(err):
			return nil
		case !errdefs.IsConflict(err) && !strings.Contains(err.Error(),
			"did not receive an exit event"):
			// the former: "removal … is already in progress"
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctxerr.Of(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// beingRemoved reports whether the engine is at it, or done.
func beingRemoved(ctx context.Context, d *client.Client, id string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	inspected, err := d.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	return errdefs.IsNotFound(err) || err == nil && inspected.Container.State != nil &&
		inspected.Container.State.Status == container.StateRemoving
}
