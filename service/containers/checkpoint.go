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
	// The container runs on: its runtime has refused.
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

// snapshotRepository is the repository of the images that Snapshot makes.
const snapshotRepository = "sandshell-snapshot"

// Snapshot implements place.Place. The engine takes from the container what the configuration of a
// commit leaves out. In the container, user, directory, main process, variables and labels are the
// box's, so Snapshot sets them to those of the image.
func (p *Place) Snapshot(ctx context.Context, handle string) (string, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return "", err
	}
	inspected, err := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
	if err != nil {
		return "", wrap("inspect the container", err)
	}
	c := inspected.Container
	if err := checkFiles(ctx, e, &c); err != nil {
		return "", err
	}
	base, err := e.ImageInspect(ctx, c.Image)
	if err != nil {
		return "", fmt.Errorf("inspect the box's image: %w", err)
	}
	config := &container.Config{Labels: map[string]string{}}
	imageLabels, imageEnv := map[string]string{}, []string(nil)
	if b := base.Config; b != nil {
		config.User, config.WorkingDir = b.User, b.WorkingDir
		config.Entrypoint, config.Cmd = append([]string{}, b.Entrypoint...), b.Cmd
		imageLabels, imageEnv = b.Labels, b.Env
	}
	config.Env = envOf(imageEnv, c.Config.Env)
	// A commit cannot remove a label, so one that the image does not have becomes empty.
	for label := range c.Config.Labels {
		config.Labels[label] = imageLabels[label]
	}
	name := snapshotRepository + ":" + strings.ToLower(rand.Text())
	if err := e.CommitAs(ctx, handle, name, "sandshell: the files of box "+
		strings.TrimPrefix(c.Name, "/"), config); err != nil {
		return "", wrap("make an image of the container", err)
	}
	if s := c.State; s != nil && s.Running && !s.Paused {
		docker.Settle(ctx, e.Client, handle) // the engine paused it during the commit
	}
	return name, nil
}

// envOf returns the variables of an image for a commit of a container that has those of box. A
// commit cannot remove a variable, so one that the image does not have becomes empty.
func envOf(image, box []string) (env []string) {
	values := map[string]string{}
	for _, kv := range image {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	for _, kv := range box {
		name, _, _ := strings.Cut(kv, "=")
		env = append(env, name+"="+values[name])
	}
	return env
}

// gVisorFiles begins the name of the file in which gVisor keeps what a container has changed,
// unless it was started with --overlay2=none.
const gVisorFiles = "/.gvisor.filestore."

// checkFiles returns an error if an image of the container would not have its files.
func checkFiles(ctx context.Context, e *docker.Engine, c *container.InspectResponse) error {
	if c.HostConfig == nil || c.HostConfig.Runtime == "runc" {
		return nil
	}
	diff, err := e.ContainerDiff(ctx, c.ID, client.ContainerDiffOptions{})
	if err != nil {
		return wrap("look for what the container has changed", err)
	}
	for _, change := range diff.Changes {
		if strings.HasPrefix(change.Path, gVisorFiles) {
			return fmt.Errorf("%w: the runtime %q keeps the box's files in %s, where no image "+
				"gets them: start runsc with --overlay2=none", errors.ErrUnsupported,
				c.HostConfig.Runtime, change.Path)
		}
	}
	return nil
}
