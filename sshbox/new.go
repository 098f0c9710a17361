package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// New creates and starts a container, connects to it, and starts the main session. It pulls the
// image first if Config.Pull says so. Close removes the container. If New fails, or if ctx ends
// before New has returned, no container is left.
//
// With Config.Snapshot the sessions are those of the snapshot. If the box cannot have all of them
// as they were (because the Config is another one, for example), the error is a
// *sandbox.IncompleteError.
//
// The container has the labels sandshell (this library's version), sandshell.box, sandshell.host
// and sandshell.pid (the process that owns it). Unless Config.Keep is set, the container ends and
// is removed once this process has been gone for Config.Linger.
func New(ctx context.Context, c Config) (*DockerSSHBox, error) {
	box, err := makeBox(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return box, nil
}

func makeBox(ctx context.Context, c Config) (*DockerSSHBox, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	switch {
	case len(c.Plugins) == 0:
		return newBare(ctx, c)
	case c.Snapshot != "": // they are set up there, or in this box only
		box, err := newBare(ctx, c)
		if err != nil {
			return nil, err
		}
		if err := box.InitPlugins(ctx, c.Plugins...); err != nil {
			return nil, errors.Join(err, box.Close())
		}
		return box, nil
	}
	return newWithPlugins(ctx, c)
}

// newBare makes a box without plugins.
func newBare(ctx context.Context, c Config) (*DockerSSHBox, error) {
	h, image, err := newHost(ctx, &c)
	if err != nil {
		return nil, err
	}
	if h.container.Checkpoint != nil {
		return newCopy(ctx, c, h)
	}
	var state []byte // of the sessions
	if c.Snapshot != "" {
		state, err = h.engine.TakeState(ctx, h.container.ID, shellbox.MaxSaved)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("snapshot %s: %w", c.Snapshot, err), h.Close())
		}
	}
	dir := c.Dir
	if dir == "" {
		dir = h.workDir(ctx, c, image)
	}
	box, err := shellbox.New(ctx, h, shellbox.Options{Dir: dir, Shell: c.Shell, Grace: c.Grace,
		StartLimit: c.StartLimit, Logger: c.Logger})
	if err != nil {
		err = remotebox.ExplainStart("Config", "the image", c.Dir, c.Shell, err)
		return nil, fmt.Errorf("container from image %q: %w", c.Image, err)
	}
	if c.Snapshot != "" {
		if err := shellbox.Restore(ctx, box, state, c.Env); err != nil {
			return nil, errors.Join(fmt.Errorf("snapshot %s: %w", c.Snapshot, err), box.Close())
		}
	}
	b := newDockerSSHBox(box, h)
	b.config, b.docker = &c, c.Docker
	return b, nil
}

// newCopy makes a box of a container that was started from a checkpoint, with an identity of its
// own.
func newCopy(ctx context.Context, c Config, h *dockerHost) (*DockerSSHBox, error) {
	fail := func(err error, closing error) error {
		return errors.Join(fmt.Errorf("snapshot %s: %w", c.Snapshot, err), closing)
	}
	env, err := h.container.Environ(ctx)
	var changed []string
	if err == nil {
		changed, err = h.TakeIdentity(ctx, env, c.Linger, c.Keep)
	}
	if err != nil {
		return nil, fail(err, h.Close())
	}
	box, err := shellbox.Attach(ctx, h, shellbox.Options{Grace: c.Grace, StartLimit: c.StartLimit,
		Logger: c.Logger})
	if err != nil {
		return nil, fail(err, h.Close())
	}
	if err := shellbox.Renew(ctx, box, changed); err != nil {
		return nil, fail(err, box.Close())
	}
	b := newDockerSSHBox(box, h)
	b.config, b.docker = &c, c.Docker
	return b, nil
}

// workDir returns the image's working directory, or "/" if the user may not enter it. "" stands for
// the directory in which boxd starts programs.
func (h *dockerHost) workDir(ctx context.Context, c Config, image *docker.Image) string {
	if image.WorkDir == "" || c.User == "" && image.User == "" {
		return image.WorkDir
	}
	// boxd enters the directory before it finds that there is no such program
	const missing = "/proc/self/exe/none"
	if _, err := h.Start(ctx, shellbox.Program{Args: []string{missing},
		Dir: image.WorkDir}); errors.Is(err, fs.ErrPermission) {
		return "/"
	}
	return image.WorkDir
}
