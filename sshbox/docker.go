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
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A DockerSSHBox is a container as a sandbox.
type DockerSSHBox struct {
	*shellbox.Box
	container *containerHandle
}

var _ sandbox.Sandbox = (*DockerSSHBox)(nil)

// ContainerID is the container's id, as docker inspect has it.
func (b *DockerSSHBox) ContainerID() string { return b.container.id }

// ContainerName is the container's name.
func (b *DockerSSHBox) ContainerName() string { return b.container.name }

// New pulls the image if need be, creates and starts a container, logs in to it, and starts the main session. Close
// removes the container. When New fails, or ctx ends before it has returned, there is no container left.
//
// The container has the labels sandshell (this library's version), sandshell.box, sandshell.host and sandshell.pid
// (the process it belongs to). It ends by itself when this process does; what is then left of it, should this process
// have been killed, goes with "docker container prune --filter label=sandshell".
func New(ctx context.Context, c Config) (*DockerSSHBox, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	h, workDir, err := newContainerHost(ctx, c)
	if err != nil {
		return nil, err
	}
	box, err := shellbox.New(ctx, h, shellbox.Options{Dir: workDir, Shell: c.Shell, Logger: c.Logger})
	if err != nil {
		return nil, fmt.Errorf("container from image %q: %w", c.Image, err)
	}
	return &DockerSSHBox{Box: box, container: h.container}, nil
}

// A containerHost is a container as a host.
type containerHost struct {
	*host
	container *containerHandle
	streams   *attached
	removed   error // what its removal said

	sweeping  chan struct{} // closed when sweep is done
	stopSweep context.CancelFunc
}

// newContainerHost makes a container and logs in to it. It returns the directory to work in, too: "" is the user's
// home.
func newContainerHost(ctx context.Context, c Config) (_ *containerHost, workDir string, err error) {
	e, err := openEngine(ctx, c.Docker)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			e.close()
		}
	}()
	image, err := e.image(ctx, c)
	if err != nil {
		return nil, "", err
	}
	user, _, _ := strings.Cut(image.user, ":") // the group is the one that /etc/passwd says
	if c.User != "" {
		user = c.User
	}
	if user == "" {
		user = "root"
	}
	if workDir = c.WorkDir; workDir == "" {
		workDir = image.workDir
	}
	h := &containerHost{container: newContainer(e, c)}
	if err := h.open(ctx, c, image, user); err != nil {
		return nil, "", err
	}
	return h, workDir, nil
}

// open creates, starts and logs in, or leaves nothing behind. The end of ctx does not cut the creation short: a
// container whose creation is cancelled can come to be after it was looked for in vain.
func (h *containerHost) open(ctx context.Context, c Config, image *image, user string) error {
	own, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), c.StartTimeout,
		fmt.Errorf("the container did not come up within %v: %w", c.StartTimeout, context.DeadlineExceeded))
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()

	k, err := makeKeys()
	if err != nil {
		return err
	}
	creation, cancelCreation := context.WithTimeout(context.WithoutCancel(ctx), c.StartTimeout)
	defer cancelCreation()
	err = h.container.create(creation, c, user)
	if err == nil {
		err = h.up(own, c, k, user)
	}
	if err != nil {
		if removal := h.container.remove(ctx); removal != nil {
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
	h.host.env = h.environment(c, image)
	h.host.scrub = scrubbed
	h.host.autopsy = h.autopsy

	sweep, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.sweeping, h.stopSweep = make(chan struct{}), cancel
	go func() {
		defer close(h.sweeping)
		h.container.engine.sweep(sweep, c.Logger)
	}()
	return nil
}

// up starts the container and logs in. It does not wait for the engine's word that the container runs: it does so
// some time before.
func (h *containerHost) up(ctx context.Context, c Config, k *keys, user string) error {
	var err error
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
		h.stopSweep()
		h.host.shut()
		<-h.sweeping
		h.removed = h.container.remove(context.Background())
		h.container.engine.close()
		close(h.host.closed)
	})
	<-h.host.closed
	return h.removed
}
