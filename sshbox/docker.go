package sshbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A DockerSSHBox is a container as a sandbox.
type DockerSSHBox struct {
	*shellbox.Box
	*plugin.Mixin
	container *containerHandle
	boxd      *boxdHost // nil: the server is OpenSSH
}

var _ sandbox.Sandbox = (*DockerSSHBox)(nil)

// ContainerID is the container's id, as docker inspect has it.
func (b *DockerSSHBox) ContainerID() string { return b.container.id }

// ContainerName is the container's name.
func (b *DockerSSHBox) ContainerName() string { return b.container.name }

// New pulls the image if need be, creates and starts a container, connects to it, and starts the main session. Close
// removes the container. When New fails, or ctx ends before it has returned, there is no container left.
//
// The container has the labels sandshell (this library's version), sandshell.box, sandshell.host and sandshell.pid
// (the process it belongs to). Unless Config.Keep says otherwise, it ends by itself, and is removed, when this process has been gone for
// Config.Linger.
func New(ctx context.Context, c Config) (*DockerSSHBox, error) {
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
	h, workDir, err := newDockerHost(ctx, c)
	if err != nil {
		return nil, err
	}
	box, err := shellbox.New(ctx, h, shellbox.Options{Dir: workDir, Shell: c.Shell, Logger: c.Logger})
	if err != nil {
		return nil, fmt.Errorf("container from image %q: %w", c.Image, err)
	}
	return newDockerSSHBox(box, h), nil
}

// A dockerHost is a container as a host.
type dockerHost interface {
	shellbox.Host
	handle() *containerHandle
}

func newDockerSSHBox(box *shellbox.Box, h dockerHost) *DockerSSHBox {
	b := &DockerSSHBox{Box: box, container: h.handle()}
	b.boxd, _ = h.(*boxdHost)
	b.Mixin = plugin.NewMixin(b)
	return b
}

// newDockerHost makes a container and logs in to it. It returns the directory to work in, too: "" is where the server starts programs.
func newDockerHost(ctx context.Context, c Config) (_ dockerHost, workDir string, err error) {
	e, err := openEngine(ctx, c.Docker)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	live := make(chan bool, 1)
	go func() { live <- e.liveRestore(ctx) }()
	image, err := e.image(ctx, c)
	if err != nil {
		<-live
		return nil, "", err
	}
	user := c.user(image)
	if workDir = c.WorkDir; workDir == "" {
		workDir = image.workDir
	}
	container := newContainer(e, c)
	if c.Server == OpenSSH {
		h := &containerHost{container: container}
		err = container.open(ctx, c, user, sshdMain, func(ctx context.Context) error { return h.up(ctx, c, image, user) })
		if err != nil {
			return nil, "", err
		}
		h.sweeper = e.sweeper(ctx, c.Logger)
		return h, workDir, nil
	}
	binary, err := boxdFor(c.Image, image.os, image.arch)
	if err != nil {
		return nil, "", err
	}
	h, err := newBoxdHost(container, c.Logger)
	if err == nil {
		boxd, own := binary.mount(), c.mounter(user)
		if own {
			boxd = binary.ownMount()
		}
		main := boxdMain(c, image, boxd, container.box, <-live)
		again := func(ctx context.Context) error { return container.create(ctx, c, user, main) }
		err = container.open(ctx, c, user, main, func(ctx context.Context) error { return h.up(ctx, c, binary, own, again) })
	}
	if err != nil {
		return nil, "", err
	}
	h.sweeper = e.sweeper(ctx, c.Logger)
	return h, workDir, nil
}

// user is whom the programs run as.
func (c Config) user(image *image) string {
	if c.User != "" {
		return c.User
	}
	if user, _, _ := strings.Cut(image.user, ":"); user != "" { // the group is the one that /etc/passwd says
		return user
	}
	return "root"
}

// open creates a container and has up start it and log in, or leaves nothing behind. The end of ctx does not cut the creation short: a
// container whose creation is cancelled can come to be after it was looked for in vain.
func (h *containerHandle) open(ctx context.Context, c Config, user string,
	main func(*container.Config, *container.HostConfig), up func(context.Context) error) error {
	own, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), c.StartTimeout,
		fmt.Errorf("the container did not come up within %v: %w", c.StartTimeout, context.DeadlineExceeded))
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	creation, cancelCreation := context.WithTimeout(context.WithoutCancel(ctx), c.StartTimeout)
	defer cancelCreation()
	err := h.create(creation, c, user, main)
	if err == nil {
		err = up(own)
	}
	if err == nil {
		return nil
	}
	if removal := h.remove(ctx); removal != nil {
		err = errors.Join(err, removal)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("container from image %q: %w", c.Image, ctx.Err())
	case own.Err() != nil:
		return fmt.Errorf("container from image %q: %w", c.Image, context.Cause(own))
	}
	return err
}

// A containerHost is a container with an sshd of its image's as a host.
type containerHost struct {
	*host
	container *containerHandle
	streams   *attached
	removed   error // what its removal said
	sweeper   *sweeper
}

func (h *containerHost) handle() *containerHandle { return h.container }

// up starts the container and logs in. It does not wait for the engine's word that the container runs: it does so
// some time before.
func (h *containerHost) up(ctx context.Context, c Config, image *image, user string) error {
	k, err := makeKeys()
	if err != nil {
		return err
	}
	if h.streams, err = h.container.attach(ctx, c.Logger); err != nil {
		return err
	}
	loggingIn, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() {
		err := h.container.start(ctx)
		if err != nil {
			cancel()
		}
		started <- err
	}()
	conn, err := k.login(loggingIn, h.streams, c.Image, user)
	if startErr := <-started; startErr != nil {
		if conn != nil {
			conn.close()
		}
		return startErr
	}
	if err != nil {
		return err
	}
	h.host = newHost("DockerSSHBox", nil, newPool(conn, 100000, nil))
	h.host.env = h.environment(c, image)
	h.host.scrub = scrubbed
	h.host.autopsy = h.autopsy
	return nil
}

// defaultPath is the PATH that Docker gives a container whose image says nothing.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is what docker exec would give a program. The sshd has it, but hands nothing on.
func (h *containerHost) environment(c Config, image *image) []string {
	hostname := c.Hostname
	if hostname == "" && c.Network == "host" {
		hostname, _ = os.Hostname()
	} else if hostname == "" {
		hostname = h.container.id[:min(12, len(h.container.id))]
	}
	return slices.Concat([]string{defaultPath, "HOSTNAME=" + hostname}, image.env, c.environ())
}

// autopsy finds out what became of the container whose streams have ended.
func (h *containerHost) autopsy(ctx context.Context, _ *connection) error {
	lost := func(err error, format string, args ...any) error {
		return &sandbox.LostError{Box: h.String(), Reason: fmt.Sprintf(format, args...), Err: err}
	}
	var said error
	if s := h.streams.said(); s != "" {
		said = errors.New(s)
	}
	// The engine learns of an end after the streams have.
	for end := time.Now().Add(3 * time.Second); ; {
		inspected, err := h.container.engine.ContainerInspect(ctx, h.container.id, client.ContainerInspectOptions{})
		switch state := inspected.Container.State; {
		case errdefs.IsNotFound(err):
			return lost(nil, "the container was removed")
		case err != nil && ctx.Err() == nil:
			return lost(err, "the Docker engine at %s does not answer", h.container.engine.DaemonHost())
		case err != nil || state == nil:
		case state.Status == "removing" || state.Status == "dead":
			return lost(nil, "the container was removed")
		case state.Running:
		case state.OOMKilled:
			limit := "the machine's memory"
			if h.container.memory > 0 {
				limit = fmt.Sprintf("its %d MiB", h.container.memory>>20)
			}
			return lost(nil, "out of memory: the container used up %s and was killed", limit)
		case state.ExitCode == 137:
			return lost(nil, "the container was killed")
		default:
			return lost(said, "the container ended with status %d", state.ExitCode)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
			if time.Now().Before(end) {
				continue
			}
		}
		return lost(said, "the connection to the container broke")
	}
}

// Close ends the connection, removes the container and waits until it is gone.
func (h *containerHost) Close() error {
	h.host.closing.Do(func() {
		h.sweeper.stop()
		h.host.shut()
		h.removed = h.container.remove(context.Background())
		h.container.engine.close()
		close(h.host.closed)
	})
	<-h.host.closed
	return h.removed
}
