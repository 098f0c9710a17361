package sshbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// A dockerHost is a container with boxd as a shellbox.Host.
type dockerHost struct {
	*remotebox.Host
	engine    *docker.Engine
	container *docker.Container
}

// newHost makes a container and connects to it. If newHost fails, it leaves nothing behind.
// If the host was started from the checkpoint of a snapshot, newHost sets c.Runtime, and its boxd
// has all that was in the other box.
func newHost(ctx context.Context, c *Config) (h *dockerHost, image *docker.Image, err error) {
	e, err := openEngine(ctx, "Config.Docker", c.Docker)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	var checkpoint *docker.Checkpoint
	if c.Snapshot != "" {
		if checkpoint, err = e.FindSnapshot(ctx, c.Snapshot); err != nil {
			return nil, nil, fmt.Errorf("Config.Snapshot: %w", err)
		}
	}
	if image, err = e.Image(ctx, c.source()); err != nil {
		return nil, nil, err
	}
	if checkpoint != nil {
		if err = checkCheckpoint(c, checkpoint, image); err != nil {
			return nil, nil, err
		}
	}
	h, err = startContainer(ctx, *c, e, image, checkpoint)
	return h, image, err
}

// checkCheckpoint returns an error if no box of c can start from a checkpoint. It sets c.Runtime.
func checkCheckpoint(c *Config, from *docker.Checkpoint, image *docker.Image) error {
	switch b := bin.For(image.Arch); {
	case c.Outward:
		return fmt.Errorf("Config.Outward: %w: a box of snapshot %s has what its box had, which "+
			"was without", errors.ErrUnsupported, c.Snapshot)
	case b == nil || b.Sum != from.Boxd:
		return fmt.Errorf("Config.Snapshot: %w: in the memory of snapshot %s runs a program of "+
			"another version of sandshell: use that version, or make another snapshot",
			errors.ErrUnsupported, c.Snapshot)
	}
	if c.Runtime == "" {
		c.Runtime = from.Runtime
	}
	return nil
}

// startContainer makes a container from an image and connects to it. If it succeeds, the host owns
// the engine.
func startContainer(ctx context.Context, c Config, e *docker.Engine,
	image *docker.Image, checkpoint *docker.Checkpoint) (*dockerHost, error) {
	spec, err := c.spec(image, e.Address())
	if err != nil {
		return nil, err
	}
	spec.Checkpoint = checkpoint
	starting, cancel := context.WithTimeoutCause(ctx, c.StartTimeout,
		fmt.Errorf("the container did not come up within %v: %w", c.StartTimeout,
			context.DeadlineExceeded))
	defer cancel()
	fail := func(err error) error {
		switch {
		case ctx.Err() != nil:
			err = ctxerr.Of(ctx)
		case starting.Err() != nil:
			err = ctxerr.Of(starting)
		}
		return fmt.Errorf("container from image %q: %w", c.Image, err)
	}
	container, err := e.Start(starting, spec)
	if err != nil {
		return nil, fail(err)
	}
	h, err := connect(starting, e, container, remotebox.Alone)
	if err != nil {
		if starting.Err() == nil {
			err = container.PostMortem(starting, err)
		}
		container.Answered()
		return nil, errors.Join(fail(err), container.Remove(ctx))
	}
	container.Answered()
	return h, nil
}

// connect connects to the boxd of a running container, as an owner. If it succeeds, the host owns
// the engine.
func connect(ctx context.Context, e *docker.Engine, c *docker.Container,
	way remotebox.Way) (*dockerHost, error) {
	config := client.Config{Name: "DockerSSHBox", Place: c, Keep: c.Keep,
		Joins: bool(way), Patience: c.Linger, Logger: c.Logger.With("container", c.Name)}
	if c.Checkpoint != nil {
		config.Renews = c.Box
	}
	h, err := client.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	sweeper := e.Sweep(ctx, c.Logger, func() { remotebox.ReapSSHConfigs(c.Logger) })
	return &dockerHost{Host: remotebox.NewHost(h, c, sweeper.Stop, e.Close), engine: e,
		container: c}, nil
}
