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

// A Spec says which container to make. Config and Host say what users want; Start adds boxd, labels
// and what Keep requires.
type Spec struct {
	Name     string // "": "sandshell-" and a random text
	Platform *ocispec.Platform
	Config   container.Config
	Host     container.HostConfig

	Boxd *bin.Binary
	// OwnBoxd gives the container a volume of its own for boxd. It is set if processes in the
	// container may change its mounts.
	OwnBoxd bool
	// AnyPIDs allows an engine that cannot limit processes to leave out Host.PidsLimit.
	AnyPIDs bool
	Linger  time.Duration // how long boxd goes on without an owner
	Keep    bool          // boxd goes on without an owner for ever
	Outward bool          // boxd brings connections to the outside to the owner
	Command []string      // runs beside boxd, with the container's streams; if empty, nothing runs

	// Checkpoint is what the container starts from; nil: it starts anew. It is that of the snapshot
	// of Config.Image. boxd is then another box's until it has been renewed with the id Box.
	Checkpoint *Checkpoint

	Logger *slog.Logger
}

// A Container is a box's container, from before its creation until after its removal. Once it has
// been started, its methods may be called from several goroutines.
type Container struct {
	ID   string // "" until it is known
	Name string
	Box  string // the value of its label remotebox.BoxLabel, which no other container has
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

// create creates the container. Even if create fails, there may be a container, so the caller calls
// Remove in any case.
//
// The end of ctx does not cancel the creation, because the engine may finish a cancelled creation
// after Remove has found nothing to remove.
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
		// If only the answer was lost, there may be a container, even one that appears after
		// Remove.
		orphans.Add(c.Box)
		return c.explainCreate(err)
	}
	c.ID = created.ID
	for _, warning := range created.Warnings {
		c.Logger.Warn("the engine warns about the container", "container", c.Name, "warning",
			warning)
	}
	if err := c.checkRuntime(creation); err != nil || c.Checkpoint == nil {
		return err
	}
	return c.putCheckpoint(creation)
}

// checkRuntime returns an error if the container has not got the runtime that Config.Runtime asks
// for. Podman ignores that setting. The caller may rely on the runtime to keep programs from the
// machine's kernel.
func (c *Container) checkRuntime(ctx context.Context) error {
	if c.Host.Runtime == "" {
		return nil
	}
	inspected, err := c.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("create container: ask for its runtime: %w", err)
	}
	if host := inspected.Container.HostConfig; host == nil || host.Runtime != c.Host.Runtime {
		return fmt.Errorf("create container: Config.Runtime: the engine ignores the runtime %q: "+
			"leave it out; Podman has one runtime for all containers, which its "+
			"containers.conf names", c.Host.Runtime)
	}
	return nil
}

// boxd makes boxd the container's main process.
//
// An engine that keeps containers while it restarts (live-restore) nevertheless ends those with
// AutoRemove (seen with Docker 20.10.24). On such an engine the container has no AutoRemove. After
// the box has ended by itself, the container stays until a program calls Reap, as New does.
//
// Clients claim the box over its standard input. StdinOnce is false, so that the input stays open
// after the first client.
//
// The image's health check never runs, because nothing here asks for its result.
func (c *Container) boxd(config *container.Config, host *container.HostConfig, liveRestore bool) {
	config.OpenStdin, config.StdinOnce, config.Tty = true, false, false
	config.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	config.Entrypoint = []string{wire.Path, "serve", "-linger", c.Linger.String()}
	if c.Keep {
		config.Entrypoint = append(config.Entrypoint, "-keep")
	}
	if c.Outward {
		config.Entrypoint = append(config.Entrypoint, "-outward")
	}
	config.Entrypoint = slices.Concat(config.Entrypoint, []string{c.Box}, c.Command)
	if c.Checkpoint != nil {
		config.Entrypoint = c.Checkpoint.Args // the runtime compares them
	}
	host.AutoRemove = !c.Keep && !liveRestore
	boxd := sharedMount(c.Boxd)
	if c.OwnBoxd {
		boxd = ownMount()
	}
	host.Mounts = append(slices.Clone(host.Mounts), boxd)
	// The log is bounded, because boxes live for hours.
	host.LogConfig = container.LogConfig{Type: "json-file",
		Config: map[string]string{"max-size": "1m"}}
}

// labels returns the container's labels: the user's, and this library's.
func (c *Container) labels(more map[string]string) map[string]string {
	labels := map[string]string{}
	for name, value := range more {
		if !remotebox.IsOwnLabel(name) {
			labels[name] = value
		}
	}
	labels[remotebox.VersionLabel] = remotebox.Version()
	labels[remotebox.BoxLabel] = c.Box
	labels[remotebox.LingerLabel] = c.Linger.String()
	if c.Boxd != nil {
		labels[boxdLabel] = c.Boxd.Sum
	}
	if c.Keep {
		labels[remotebox.KeepLabel] = "true"
	}
	labels[remotebox.PIDLabel] = strconv.Itoa(os.Getpid())
	if host := remotebox.HostID(); host != "" {
		labels[remotebox.HostLabel] = host
	}
	return labels
}

// explainCreate adds to an engine's refusal to create the container what to do about it.
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
	case strings.Contains(text, "ange of CPUs"): // Docker: "Range of CPUs is from 0.01 to 2.00"
		return fmt.Errorf("create container: Config.CPUs: %w", err)
	case strings.Contains(text, "nknown runtime"), strings.Contains(text, "invalid runtime"):
		return fmt.Errorf("create container: Config.Runtime: %w: docker info shows the runtimes",
			err)
	case strings.Contains(text, "CapAdd"), strings.Contains(text, "CapDrop"):
		return fmt.Errorf("create container: Config.CapAdd or CapDrop: %w", err)
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
	return "it does not exist on the engine's machine: make it, or change Config.Mounts"
}
func (e missingSource) Is(target error) bool { return target == fs.ErrNotExist }
func (e missingSource) Unwrap() error        { return e.err }

// Remove removes the container and its anonymous volumes, whether it runs or not, and waits until
// it is gone. If there is no container, Remove returns nil. It has limits of its own and does not
// end with ctx, which has often ended already. After an error, a later Reap of this process removes
// the container.
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
	if id == "" { // the engine's answer to the creation was lost: find the container by its name
		asked, cancel := context.WithTimeout(ctx, removeLimit)
		defer cancel()
		inspected, err := c.engine.ContainerInspect(asked, c.Name, client.ContainerInspectOptions{})
		switch {
		case errdefs.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case inspected.Container.Config == nil ||
			inspected.Container.Config.Labels[remotebox.BoxLabel] != c.Box:
			return nil
		}
		id = inspected.Container.ID
	}
	return Remove(ctx, c.engine.Client, id)
}
