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
	if len(c.Plugins) > 0 {
		return newWithPlugins(ctx, c)
	}
	return newBare(ctx, c)
}

// newBare makes a box without plugins.
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
		err = remotebox.ExplainStart("Config", "the image", c.Dir, c.Shell, err)
		return nil, fmt.Errorf("container from image %q: %w", c.Image, err)
	}
	return newDockerSSHBox(box, h), nil
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
