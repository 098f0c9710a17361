package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox"
)

// A Listed is what List tells of a container.
type Listed struct {
	ID, Name, Image string
	State           string // as the engine has it
	Created         time.Time
	Keep            bool
	Host            string // where the process is that made it, as Host has it there
	PID             int    // that process's id on Host
	Labels          map[string]string
}

// List finds the boxes on the engine, and what is left of them, the youngest first.
func (e *Engine) List(ctx context.Context) ([]Listed, error) {
	list, err := e.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", boxLabel)})
	if err != nil {
		return nil, fmt.Errorf("list boxes: %w", err)
	}
	var boxes []Listed
	for _, c := range list.Items {
		// not a box, but made of a kept image, which has some of our labels
		if c.Labels[boxLabel] == "" {
			continue
		}
		box := Listed{
			ID: c.ID, Image: c.Image, State: string(c.State), Created: time.Unix(c.Created, 0),
			Labels: c.Labels,
			Keep:   c.Labels[keepLabel] != "", Host: c.Labels[hostLabel],
		}
		box.PID, _ = strconv.Atoi(c.Labels[pidLabel])
		if len(c.Names) > 0 {
			box.Name = c.Names[0][1:] // the engine puts a slash before it
		}
		boxes = append(boxes, box)
	}
	return boxes, nil
}

// Find finds a running box by the container's id or name.
func (e *Engine) Find(ctx context.Context, id string, log *slog.Logger) (*Container, error) {
	inspected, err := e.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	c := inspected.Container
	switch {
	case errdefs.IsNotFound(err):
		return nil, &sandbox.LostError{Box: "DockerSSHBox",
			Reason: "there is no such container; sshbox.Engine.List returns those there are",
			Cause:  sandbox.LostRemoved, Err: err}
	case errdefs.Resolve(err) == errdefs.ErrUnknown:
		// no answer, or half of one: what the engine answers has a kind
		return nil, &sandbox.LostError{Box: "DockerSSHBox", Reason: "the engine does not answer",
			Cause: sandbox.LostConnection, Err: err}
	case err != nil:
		return nil, err
	case c.Config == nil || c.Config.Labels[boxLabel] == "":
		return nil, errors.New("it is a container, but not one of sandshell's")
	case c.State == nil || !c.State.Running:
		ended := &Container{ID: c.ID, Name: c.Name[1:], engine: e, Spec: Spec{Logger: log}}
		if c.HostConfig != nil {
			ended.Host.Memory = c.HostConfig.Memory
		}
		fate := ended.end(ctx)
		return nil, &sandbox.LostError{Box: "DockerSSHBox", Reason: fate.Lost, Cause: fate.Cause}
	}
	found := &Container{
		ID: c.ID, Name: c.Name[1:], Box: c.Config.Labels[boxLabel], engine: e,
		Spec: Spec{Config: container.Config{Image: c.Config.Image},
			Keep: c.Config.Labels[keepLabel] != "", Logger: log},
	}
	if found.Linger, err = time.ParseDuration(c.Config.Labels[lingerLabel]); err != nil {
		return nil, fmt.Errorf("its label %s: %w", lingerLabel, err)
	}
	if c.HostConfig != nil {
		found.Host.Memory = c.HostConfig.Memory
	}
	return found, nil
}

// RemoveBox removes a box, whoever made it. One that is not there is no error.
func (e *Engine) RemoveBox(ctx context.Context, id string) error {
	inspected, err := e.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	c := inspected.Container
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("remove box %q: %w", id, err)
	case c.Config == nil || c.Config.Labels[boxLabel] == "":
		return fmt.Errorf("remove box %q: it is a container, but not one of sandshell's", id)
	}
	return (&Container{ID: c.ID, Name: c.Name[1:], Box: c.Config.Labels[boxLabel],
		engine: e}).Remove(ctx)
}

// ServiceLabel is a label of boxes that package service has made. One of them that has ended is
// still somebody's: only the service removes it.
const ServiceLabel = "sandshell-service"

// reapAge applies to a container that was never started and whose owner is on another machine: once
// it is so old, the owner will not start it.
const reapAge = 10 * time.Minute

// now is the engine's time: its clock need not be ours.
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

// Reap removes what is left of boxes whose owners have ended: containers that have ended too, or
// that were never started, of a service's only the latter; and containers that this process could
// not remove when it wanted to. It returns how many containers it has removed.
func (e *Engine) Reap(ctx context.Context, log *slog.Logger) (removed int, err error) {
	boxes, err := e.List(ctx)
	if err != nil {
		return 0, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return 0, err
	}
	host := remotebox.HostID()
	var errs []error
	seen := map[string]bool{}
	for _, b := range boxes {
		ours := b.Host == host && b.PID > 0
		label := b.Labels[boxLabel]
		seen[label] = true
		orphan := ours && orphans.Has(label)
		switch {
		case orphan:
		case b.State != "exited" && b.State != "created" && b.State != "dead":
			continue
		case b.State != "created" && b.Labels[ServiceLabel] != "":
			continue
		case ours && !remotebox.ProcessGone(b.PID):
			continue
		case !ours && b.State == "created" && now.Sub(b.Created) < reapAge:
			continue
		}
		if log != nil {
			log.Debug("removing what is left of a box", "container", b.ID, "name", b.Name, "host",
				b.Host, "pid", b.PID)
		}
		// Not Force, else: it has ended.
		_, err := e.ContainerRemove(ctx, b.ID, client.ContainerRemoveOptions{RemoveVolumes: true,
			Force: orphan})
		switch {
		case err == nil:
			removed++
			orphans.Remove(label)
		case errdefs.IsNotFound(err), errdefs.IsConflict(err): // another is removing it
		default:
			errs = append(errs, fmt.Errorf("remove container %s: %w", b.Name, err))
		}
	}
	orphans.Forget(seen)
	return removed, errors.Join(errs...)
}
