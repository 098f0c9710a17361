package docker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/moby/moby/client"
)

// Start creates and starts a container. If Start fails, no container is left. When Start returns,
// the container runs, but boxd may not answer yet: the caller joins boxd, and then calls Answered
// or, after an error, PostMortem.
func (e *Engine) Start(ctx context.Context, s Spec) (*Container, error) {
	if err := e.CheckLimits(ctx, s); err != nil {
		return nil, fmt.Errorf("create container: %w", err)
	}
	able := e.abilities(ctx)
	if pids := s.Host.PidsLimit; pids != nil && *pids > 0 && !able.pids {
		s.Logger.Warn("the engine cannot limit processes: the container may have any number",
			"limit", *pids)
	}
	c := e.newContainer(s)
	start := c.withSharedBoxd
	if s.OwnBoxd {
		start = c.withOwnBoxd
	}
	err := start(ctx, able.liveRestore)
	for attempt := 1; retryCheckpoint(err) && attempt < checkpointAttempts; attempt++ {
		if err := c.Remove(ctx); err != nil {
			return nil, err
		}
		err = start(ctx, able.liveRestore)
	}
	if err == nil {
		return c, nil
	}
	if why := c.wrongArchitecture(err.Error()); why != nil {
		err = why
	}
	c.Answered()
	return nil, errors.Join(err, c.Remove(ctx))
}

// withOwnBoxd puts boxd into a volume of the container's own, and starts the container.
func (c *Container) withOwnBoxd(ctx context.Context, liveRestore bool) error {
	if err := c.create(ctx, liveRestore); err != nil {
		return err
	}
	program, err := c.Boxd.Program()
	if err == nil {
		err = c.engine.putBoxd(ctx, c.ID, program)
	}
	if err != nil {
		return fmt.Errorf("put boxd into the container: %w", err)
	}
	if err := c.listenAgain(ctx); err != nil && !notReady(err) {
		return err
	}
	return c.start(ctx)
}

// withSharedBoxd starts the container with the volume that containers share. If the volume turns
// out to be empty, withSharedBoxd fills it and makes the container anew, because the engine removes
// a container that did not start (AutoRemove).
func (c *Container) withSharedBoxd(ctx context.Context, liveRestore bool) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		seen := c.engine.fills(c.Boxd).done.Load()
		err := c.create(ctx, liveRestore)
		if err == nil {
			err = c.listenAgain(ctx)
		}
		if err == nil || attempt > 1 && notReady(err) {
			err = c.start(ctx)
		}
		if attempt == attempts || !missingBoxd(err) && !notReady(err) {
			return err
		}
		if attempt > 1 {
			seen = math.MaxInt64 // another goroutine's fill did not help: fill it here
		}
		if err := c.Remove(ctx); err != nil {
			return err
		}
		if err := c.engine.fillBoxd(ctx, c, seen); err != nil {
			return err
		}
	}
}

// listenAgain replaces the container's lastWords, before the container starts.
func (c *Container) listenAgain(ctx context.Context) (err error) {
	c.words.close()
	c.words, err = c.listen(ctx)
	return err
}

func (c *Container) start(ctx context.Context) error {
	var o client.ContainerStartOptions
	if c.Checkpoint != nil {
		o.CheckpointID = startCheckpoint
	}
	_, err := c.engine.ContainerStart(ctx, c.ID, o)
	if err == nil {
		if c.Checkpoint != nil {
			c.dropCheckpoint(ctx)
		}
		return nil
	}
	text := err.Error()
	if c.Checkpoint != nil && !missingBoxd(err) {
		return explainRestore(err)
	}
	switch {
	case strings.Contains(text, "unable to find user"),
		strings.Contains(text, "unable to find group"),
		strings.Contains(text, "no matching entries in"):
		return missingUser{fmt.Errorf("start container: Config.User: the name is not in "+
			"/etc/passwd or /etc/group of image %q: give another name, or numbers, \"uid\" or "+
			"\"uid:gid\": %w", c.Config.Image, err)}
	case strings.Contains(text, "capabilities: [[gpu]]"):
		return fmt.Errorf("start container: Config.GPUs: the engine can give no GPUs: leave GPUs "+
			"out, or install the NVIDIA Container Toolkit there: %w", err)
	case noNetwork(text):
		return fmt.Errorf("start container: %w", missingNetwork{err})
	}
	return fmt.Errorf("start container: %w", err)
}

// A missingUser is an error for which errdefs.IsInvalidArgument reports true. The engine answers as
// if it had failed itself.
type missingUser struct{ error }

func (e missingUser) InvalidParameter() {}
func (e missingUser) Unwrap() error     { return e.error }

// notReady reports whether an engine refused to attach to a container because it cannot be started.
// Podman prepares a container when it attaches, and answers 409 if, for example, boxd's volume is
// empty. Only the start tells the reason, and only before Podman removes the container
// (AutoRemove).
func notReady(err error) bool { return err != nil && strings.Contains(err.Error(), "received 409") }

// noNetwork reports whether an error says that the container's network does not exist. Docker says
// so when it starts the container, Podman when it creates it.
func noNetwork(text string) bool {
	return strings.Contains(text, "network") && strings.Contains(text, "not found")
}

// missingNetwork adds to such an error what to do.
type missingNetwork struct{ err error }

func (e missingNetwork) Error() string {
	return "Config.Network: there is no such network: docker network ls shows the networks, and " +
		"docker network create makes one: " + e.err.Error()
}
func (e missingNetwork) Unwrap() error { return e.err }

// Answered stops listening to the container's standard error. The caller calls it once boxd has
// answered or will not be used.
func (c *Container) Answered() {
	c.words.close()
	c.words = nil
}
