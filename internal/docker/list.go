package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox"
)

// A Listed is a container as List finds it.
type Listed struct {
	ID, Name, Image string
	State           string // in the engine's words
	Created         time.Time
	Labels          map[string]string
	remotebox.Ownership
}

// List returns the boxes on the engine, and what is left of boxes, the youngest first.
func (e *Engine) List(ctx context.Context) ([]Listed, error) {
	list, err := e.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", remotebox.BoxLabel)})
	if err != nil {
		return nil, fmt.Errorf("list boxes: %w", err)
	}
	var boxes []Listed
	for _, c := range list.Items {
		box := Listed{
			ID: c.ID, Image: c.Image, State: string(c.State), Created: time.Unix(c.Created, 0),
			Labels:    c.Labels,
			Ownership: remotebox.ReadOwnership(c.Labels, c.Labels[remotebox.HostLabel]),
		}
		if box.Box == "" {
			continue // a user's container of a kept image: our labels are there, but empty
		}
		if len(c.Names) > 0 {
			box.Name = c.Names[0][1:] // without the engine's slash
		}
		boxes = append(boxes, box)
	}
	return boxes, nil
}

// Find returns a running box by the container's id or name. If there is none, the error is a
// *sandbox.LostError that says why.
func (e *Engine) Find(ctx context.Context, id string, log *slog.Logger) (*Container, error) {
	inspected, err := e.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	c := inspected.Container
	switch {
	case errdefs.IsNotFound(err):
		return nil, &sandbox.LostError{Box: "DockerSSHBox",
			Reason: "there is no such container; sshbox.Engine.List returns those there are",
			Cause:  sandbox.LostRemoved, Err: err}
	case errdefs.Resolve(err) == errdefs.ErrUnknown:
		// The answer is missing or incomplete. Every complete answer has a kind.
		return nil, &sandbox.LostError{Box: "DockerSSHBox", Reason: "the engine does not answer",
			Cause: sandbox.LostConnection, Err: err}
	case err != nil:
		return nil, err
	case c.Config == nil || c.Config.Labels[remotebox.BoxLabel] == "":
		return nil, errors.New("it is a container, but not one of sandshell's")
	case c.State == nil || !c.State.Running:
		ended := &Container{ID: c.ID, Name: c.Name[1:], engine: e, Spec: Spec{Logger: log}}
		if c.HostConfig != nil {
			ended.Host.Memory = c.HostConfig.Memory
		}
		found := ended.end(ctx, c.State)
		return nil, &sandbox.LostError{Box: "DockerSSHBox", Reason: found.Lost, Cause: found.Cause}
	}
	found := &Container{
		ID: c.ID, Name: c.Name[1:], Box: c.Config.Labels[remotebox.BoxLabel], engine: e,
		Spec: Spec{Config: container.Config{Image: c.Config.Image},
			Keep: c.Config.Labels[remotebox.KeepLabel] != "", Logger: log},
	}
	if found.Linger, err = time.ParseDuration(c.Config.Labels[remotebox.LingerLabel]); err != nil {
		return nil, fmt.Errorf("its label %s: %w", remotebox.LingerLabel, err)
	}
	if c.HostConfig != nil {
		found.Host.Memory = c.HostConfig.Memory
	}
	return found, nil
}

// RemoveBox removes a box of any program by the container's id or name. If there is no such
// container, it returns nil.
func (e *Engine) RemoveBox(ctx context.Context, id string) error {
	inspected, err := e.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	c := inspected.Container
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("remove box %q: %w", id, err)
	case c.Config == nil || c.Config.Labels[remotebox.BoxLabel] == "":
		return fmt.Errorf("remove box %q: it is a container, but not one of sandshell's", id)
	}
	return (&Container{ID: c.ID, Name: c.Name[1:], Box: c.Config.Labels[remotebox.BoxLabel],
		engine: e}).Remove(ctx)
}
