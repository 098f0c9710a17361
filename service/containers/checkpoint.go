package containers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
)

// Suspend implements place.Place, by a checkpoint of the engine. Only an engine that was started
// with --experimental makes checkpoints. They work with gVisor's runsc of 2026. runc leaves them to
// criu, which fails on kernels that are newer than itself.
func (p *Place) Suspend(ctx context.Context, handle string) (string, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return "", err
	}
	info, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the engine what it can do: %w", err)
	}
	if !info.Info.ExperimentalBuild {
		return "", fmt.Errorf("%w: the engine makes checkpoints only if dockerd is started with "+
			"--experimental", errors.ErrUnsupported)
	}
	name := "sandshell-" + strings.ToLower(rand.Text()[:12])
	_, err = e.CheckpointCreate(ctx, handle, client.CheckpointCreateOptions{
		CheckpointID: name, Exit: true})
	switch {
	case err == nil:
		return name, waitNotRunning(ctx, e, handle)
	case errdefs.IsNotFound(err), ctx.Err() != nil:
		return "", wrap("suspend the container", err)
	}
	inspected, failed := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
	if failed != nil || inspected.Container.HostConfig == nil || inspected.Container.State == nil ||
		!inspected.Container.State.Running {
		return "", fmt.Errorf("suspend the container: %w", errors.Join(err, failed))
	}
	// The container runs on, so its runtime has refused.
	return "", fmt.Errorf("%w: the runtime %q makes no checkpoint of this container: %v",
		errors.ErrUnsupported, inspected.Container.HostConfig.Runtime, err)
}

// waitNotRunning waits until the container does not run.
func waitNotRunning(ctx context.Context, e *docker.Engine, handle string) error {
	waiting := e.ContainerWait(ctx, handle, client.ContainerWaitOptions{
		Condition: container.WaitConditionNotRunning})
	select {
	case <-waiting.Result:
		return nil
	case err := <-waiting.Error:
		return wrap("wait for the container's end", err)
	}
}

// Snapshot implements place.Place.
func (p *Place) Snapshot(ctx context.Context, handle string) (string, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return "", err
	}
	inspected, err := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
	if err != nil {
		return "", wrap("inspect the container", err)
	}
	name, err := e.CommitFiles(ctx, &inspected.Container, nil)
	return name, wrap("snapshot", err)
}
