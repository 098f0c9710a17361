package containers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/checkpoint"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/service/place"
)

// Pause implements place.Place.
func (p *Place) Pause(ctx context.Context, handle string) error {
	e, err := p.connect(ctx)
	if err != nil {
		return err
	}
	err = docker.Pause(ctx, e.Client, handle)
	return wrap("pause the container", ignoreIf(ctx, e, handle, err,
		func(s *container.State) bool { return s.Paused || !s.Running }))
}

// Resume implements place.Place.
func (p *Place) Resume(ctx context.Context, handle, checkpoint string) (place.Kept, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return place.KeptNothing, err
	}
	inspected, err := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
	if err != nil {
		return place.KeptNothing, wrap("inspect the container", err)
	}
	running := func(s *container.State) bool { return s.Running && !s.Paused }
	switch s := inspected.Container.State; {
	case s == nil:
		return place.KeptNothing, errors.New("inspect the container: the engine does not tell " +
			"its state")
	case running(s):
		return place.KeptAll, nil
	case s.Paused:
		err = docker.Unpause(ctx, e.Client, handle)
		return place.KeptAll, wrap("unpause the container",
			ignoreIf(ctx, e, handle, err, running))
	}
	kept, err := restart(ctx, e, handle, checkpoint)
	return kept, wrap("start the container", ignoreIf(ctx, e, handle, err, running))
}

// settleLimit is how long ignoreIf waits until the engine shows the state that made a call fail:
// another process may be removing the container.
const settleLimit = 2 * time.Second

// ignoreIf returns nil in place of an error of the engine if the container is already as the caller
// wants it. If the container is being removed, it returns an error of errdefs.IsNotFound.
func ignoreIf(ctx context.Context, e *docker.Engine, handle string, err error,
	already func(*container.State) bool) error {
	if err == nil || errdefs.IsNotFound(err) {
		return err
	}
	for end := time.Now().Add(settleLimit); ; {
		inspected, failed := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
		s := inspected.Container.State
		switch {
		case errdefs.IsNotFound(failed):
			return failed
		case failed != nil || s == nil:
			return err
		case s.Status == container.StateRemoving:
			return fmt.Errorf("it is being removed: %w", errdefs.ErrNotFound)
		case already(s):
			return nil
		case time.Now().After(end):
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// restart starts a container that has ended: from the checkpoint if there is one, else with its
// files alone.
//
// On Docker 20.10, one start from a checkpoint in seven fails with "content digest …: not found"
// (moby#42900), and works when it is tried again.
func restart(ctx context.Context, e *docker.Engine, handle, name string) (place.Kept, error) {
	const attempts = 5
	for attempt := 1; name != ""; attempt++ {
		_, err := e.ContainerStart(ctx, handle, client.ContainerStartOptions{CheckpointID: name})
		if err == nil {
			_, err = e.CheckpointRemove(ctx, handle, client.CheckpointRemoveOptions{
				CheckpointID: name})
			return place.KeptAll, err
		}
		list, failed := e.CheckpointList(ctx, handle, client.CheckpointListOptions{})
		if failed == nil && !slices.ContainsFunc(list.Items, func(c checkpoint.Summary) bool {
			return c.Name == name
		}) {
			break // the container was already started from it, and has ended since
		}
		if attempt == attempts || !strings.Contains(err.Error(), "content digest") {
			return place.KeptNothing, err
		}
	}
	_, err := e.ContainerStart(ctx, handle, client.ContainerStartOptions{})
	return place.KeptFiles, err
}
