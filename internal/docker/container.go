package docker

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// A Spec says which container to make. Config and Host are as users want them: Start adds boxd,
// labels, and what follows from Keep.
type Spec struct {
	Name     string // "": one of its own
	Platform *ocispec.Platform
	Config   container.Config
	Host     container.HostConfig

	Boxd *bin.Binary
	// boxd is not shared with other containers: processes in this one may change its mounts
	OwnBoxd bool
	Linger  time.Duration // how long boxd goes on without an owner
	Keep    bool          // boxd goes on without an owner for ever
	Command []string      // runs beside boxd, with the container's streams; none: nothing runs

	Logger *slog.Logger
}

// A Container is a container of this package, from before its creation until after its removal.
// Once it has been started, its methods may be called from several goroutines.
type Container struct {
	ID   string // "" until it is known
	Name string
	Box  string // the label that tells it from any other
	Spec

	engine *Engine
	words  *lastWords // nil once boxd has answered
}

func (e *Engine) newContainer(s Spec) *Container {
	c := &Container{Name: s.Name, Box: strings.ToLower(rand.Text()[:16]), Spec: s, engine: e}
	if c.Name == "" {
		c.Name = "sandshell-" + c.Box
	}
	return c
}

// create creates the container. Even if create fails, there may be a container: call Remove in any
// case.
//
// The end of ctx does not cut the creation short: the engine may finish a cancelled creation after
// Remove has found nothing to remove.
func (c *Container) create(ctx context.Context, liveRestore bool) error {
	if err := ctxerr.Of(ctx); err != nil {
		return err
	}
	creation, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	config, host := c.Config, c.Host
	config.Labels = c.labels(config.Labels)
	c.boxd(&config, &host, liveRestore)
	c.ID = ""
	created, err := c.engine.ContainerCreate(creation, client.ContainerCreateOptions{
		Config: &config, HostConfig: &host, Platform: c.Platform, Name: c.Name,
	})
	if err != nil {
		// If only the answer was lost, there may be a container, or come to be one after Remove.
		orphans.Add(c.Box)
		return c.explainCreate(err)
	}
	c.ID = created.ID
	for _, warning := range created.Warnings {
		c.Logger.Warn("the engine warns about the container", "container", c.Name, "warning",
			warning)
	}
	return c.checkRuntime(creation)
}

// checkRuntime fails if the engine did not heed which runtime was asked for, as Podman does not.
// Who asks for one may trust it to keep a program from the machine's kernel.
func (c *Container) checkRuntime(ctx context.Context) error {
	if c.Host.Runtime == "" {
		return nil
	}
	inspected, err := c.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("create container: ask for its runtime: %w", err)
	}
	if host := inspected.Container.HostConfig; host == nil || host.Runtime != c.Host.Runtime {
		return fmt.Errorf("create container: the engine does not heed the runtime %q that "+
			"Config.Runtime asks for; Podman has one for all containers, "+
			"which its containers.conf names", c.Host.Runtime)
	}
	return nil
}

// boxd makes boxd the main process.
//
// An engine that keeps containers while it restarts (live-restore) nevertheless ends those with
// AutoRemove (seen with Docker 20.10.24). On such an engine the container has no AutoRemove: after
// the box has ended by itself, it stays until somebody calls Reap, as New does.
//
// Its standard input is open for clients that claim the box. It outlives each of them: StdinOnce is
// false.
//
// The image's health check never runs: nothing here asks for its result.
func (c *Container) boxd(config *container.Config, host *container.HostConfig, liveRestore bool) {
	config.OpenStdin, config.StdinOnce, config.Tty = true, false, false
	config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	config.Entrypoint = []string{wire.Path, "serve", "-linger", c.Linger.String()}
	if c.Keep {
		config.Entrypoint = append(config.Entrypoint, "-keep")
	}
	config.Entrypoint = slices.Concat(config.Entrypoint, []string{c.Box}, c.Command)
	host.AutoRemove = !c.Keep && !liveRestore
	boxd := sharedMount(c.Boxd)
	if c.OwnBoxd {
		boxd = ownMount()
	}
	host.Mounts = append(slices.Clone(host.Mounts), boxd)
	// bounded: boxes live for hours
	host.LogConfig = container.LogConfig{Type: "json-file",
		Config: map[string]string{"max-size": "1m"}}
}

// The labels of a container say who owns it, and what another program needs to know after the owner
// has ended. None of them is secret.
const (
	versionLabel = "sandshell"        // this library's version
	boxLabel     = "sandshell.box"    // tells the box from any other
	lingerLabel  = "sandshell.linger" // Spec.Linger
	keepLabel    = "sandshell.keep"   // "true" if Spec.Keep
	hostLabel    = "sandshell.host"   // where
	pidLabel     = "sandshell.pid"    // the process is that made it
)

// labels are the container's labels: ours and the user's.
func (c *Container) labels(more map[string]string) map[string]string {
	labels := map[string]string{}
	for k, v := range more {
		if k != versionLabel && !strings.HasPrefix(k, "sandshell.") {
			labels[k] = v
		}
	}
	labels[versionLabel] = remotebox.Version()
	labels[boxLabel] = c.Box
	labels[lingerLabel] = c.Linger.String()
	if c.Keep {
		labels[keepLabel] = "true"
	}
	labels[pidLabel] = strconv.Itoa(os.Getpid())
	if host := remotebox.HostID(); host != "" {
		labels[hostLabel] = host
	}
	return labels
}

// explainCreate says what an engine's refusal to create the container means.
func (c *Container) explainCreate(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, c.Name) &&
		(errdefs.IsConflict(err) || strings.Contains(text, "already in use")):
		// Docker, Podman
		if !errdefs.IsConflict(err) {
			err = errdefs.ErrConflict.WithMessage(text)
		}
		return fmt.Errorf("create container: the name %q is taken: give another Config.Name, or "+
			"remove the other container (docker rm -f %s): %w",
			c.Name, c.Name, err)
	case strings.Contains(text, "bind source path does not exist"):
		_, source, _ := strings.Cut(text, "bind source path does not exist: ")
		return fmt.Errorf("create container: %w", &fs.PathError{Op: "mount", Path: source,
			Err: missingSource{err}})
	case noNetwork(text):
		return fmt.Errorf("create container: %w", missingNetwork{err})
	case strings.Contains(text, "names must match"): // Podman does not say which
		return fmt.Errorf("create container: the name %q: %w", c.Name, err)
	case client.IsErrConnectionFailed(err):
		return c.engine.unreachable(err)
	}
	return fmt.Errorf("create container: %w", err)
}

// missingSource matches the engine's message that a path is missing on the engine's machine.
type missingSource struct{ err error }

func (e missingSource) Error() string {
	return "it does not exist on the engine's machine; make it, or correct Config.Mounts"
}
func (e missingSource) Is(target error) bool { return target == fs.ErrNotExist }
func (e missingSource) Unwrap() error        { return e.err }

// Remove removes the container, with what runs in it and its anonymous volumes, and waits until it
// is gone. It is no error if there is none. Remove does not end with ctx, which has often ended
// already, but has limits of its own. After an error, a later Reap of this process removes the
// container.
func (c *Container) Remove(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := c.remove(ctx)
	switch {
	case err != nil:
		orphans.Add(c.Box)
		return fmt.Errorf("remove container %s: %w", c.Name, err)
	case c.ID != "":
		orphans.Remove(c.Box)
	}
	return nil
}

func (c *Container) remove(ctx context.Context) error {
	id := c.ID
	// the engine's answer to the creation was lost, or there was none: find the container by its
	// label
	if id == "" {
		asked, cancel := context.WithTimeout(ctx, removeLimit)
		defer cancel()
		inspected, err := c.engine.ContainerInspect(asked, c.Name, client.ContainerInspectOptions{})
		switch {
		case errdefs.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case inspected.Container.Config == nil ||
			inspected.Container.Config.Labels[boxLabel] != c.Box:
			return nil
		}
		id = inspected.Container.ID
	}
	return Remove(ctx, c.engine.Client, id)
}
