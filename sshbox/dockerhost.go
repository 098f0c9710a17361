package sshbox

import (
	"context"
	"errors"
	"fmt"

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
func newHost(ctx context.Context, c Config) (h *dockerHost, image *docker.Image, err error) {
	e, err := openEngine(ctx, "Config.Docker", c.Docker)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	if image, err = e.Image(ctx, c.source()); err != nil {
		return nil, nil, err
	}
	h, err = startContainer(ctx, c, e, image)
	return h, image, err
}

// startContainer makes a container from an image and connects to it. If it succeeds, the host owns
// the engine.
func startContainer(ctx context.Context, c Config, e *docker.Engine,
	image *docker.Image) (*dockerHost, error) {
	spec, err := c.spec(image, e.Address())
	if err != nil {
		return nil, err
	}
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
	h, err := client.Connect(ctx, client.Config{Name: "DockerSSHBox", Place: c, Keep: c.Keep,
		Joins: bool(way), Patience: c.Linger, Logger: c.Logger.With("container", c.Name)})
	if err != nil {
		return nil, err
	}
	sweeper := e.Sweep(ctx, c.Logger, func() { remotebox.ReapSSHConfigs(c.Logger) })
	return &dockerHost{Host: remotebox.NewHost(h, c, sweeper.Stop, e.Close), engine: e,
		container: c}, nil
}
