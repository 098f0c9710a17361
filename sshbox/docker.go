package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A DockerSSHBox is a container as a sandbox. It has all methods of sandbox.Sandbox, such as
// Execute, those of plugin.Mixin, and Detach, Session and Sessions of shellbox.Box.
type DockerSSHBox struct {
	*shellbox.Box
	*plugin.Mixin
	host *dockerHost
}

var (
	_ sandbox.Sandbox    = (*DockerSSHBox)(nil)
	_ plugin.Installer   = (*DockerSSHBox)(nil)
	_ plugin.Environment = (*DockerSSHBox)(nil)
)

// ContainerID returns the container's id, as docker inspect shows it.
func (b *DockerSSHBox) ContainerID() string { return b.host.container.ID }

// ContainerName returns the container's name.
func (b *DockerSSHBox) ContainerName() string { return b.host.container.Name }

// New pulls the image if need be, creates and starts a container, connects to it, and starts the
// main session. Close removes the container. When New fails, or ctx ends before it has returned,
// there is no container left.
//
// The container has the labels sandshell (this library's version), sandshell.box, sandshell.host
// and sandshell.pid (the process it belongs to). Unless Config.Keep says otherwise, it ends by
// itself, and is removed, when this process has been gone for Config.Linger.
func New(ctx context.Context, c Config) (*DockerSSHBox, error) {
	box, err := c.box(ctx)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return box, nil
}

func (c Config) box(ctx context.Context) (*DockerSSHBox, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(c.Plugins) > 0 {
		return newWithPlugins(ctx, c)
	}
	return newBare(ctx, c)
}

// newBare makes a box that has no plugins yet.
func newBare(ctx context.Context, c Config) (*DockerSSHBox, error) {
	h, image, err := newHost(ctx, c)
	if err != nil {
		return nil, err
	}
	dir := c.Dir
	if dir == "" {
		dir = h.workDir(ctx, c, image)
	}
	box, err := shellbox.New(ctx, h, shellbox.Options{Dir: dir, Shell: c.Shell, Grace: c.Grace,
		StartLimit: c.StartLimit, Logger: c.Logger})
	if err != nil {
		return nil, fmt.Errorf("container from image %q: %w", c.Image, err)
	}
	return newDockerSSHBox(box, h), nil
}

// workDir returns the image's working directory, or "/" if the user may not enter it; "" is where
// boxd starts programs.
func (h *dockerHost) workDir(ctx context.Context, c Config, image *docker.Image) string {
	if image.WorkDir == "" || c.User == "" && image.User == "" {
		return image.WorkDir
	}
	const none = "/proc/self/exe/none" // is looked for in the directory
	if _, err := h.Start(ctx, shellbox.Program{Args: []string{none},
		Dir: image.WorkDir}); errors.Is(err, fs.ErrPermission) {
		return "/"
	}
	return image.WorkDir
}

func newDockerSSHBox(box *shellbox.Box, h *dockerHost) *DockerSSHBox {
	b := &DockerSSHBox{Box: box, host: h}
	b.Mixin = plugin.NewMixin(b)
	return b
}

// A dockerHost is a container with boxd as a shellbox.Host.
type dockerHost struct {
	*remotebox.Host
	engine    *docker.Engine
	container *docker.Container
}

// newHost makes a container and connects to it, or leaves nothing behind.
func newHost(ctx context.Context, c Config) (h *dockerHost, image *docker.Image, err error) {
	e, err := openEngine(ctx, c.Docker)
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
	h, err = c.start(ctx, e, image)
	return h, image, err
}

// start makes a container from an image, and connects to it. The engine is the host's when it
// succeeds.
func (c Config) start(ctx context.Context, e *docker.Engine,
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
	h, err := connect(starting, e, container)
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

// connect connects to the boxd of a running container, as its new owner.
func connect(ctx context.Context, e *docker.Engine, c *docker.Container) (*dockerHost, error) {
	h, err := client.Connect(ctx, client.Config{Name: "DockerSSHBox", Place: c, Keep: c.Keep,
		Patience: c.Linger, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	sweeper := e.Sweep(ctx, c.Logger, func() { remotebox.ReapSSHConfigs(c.Logger) })
	return &dockerHost{Host: remotebox.NewHost(h, c, sweeper.Stop, e.Close), engine: e,
		container: c}, nil
}
