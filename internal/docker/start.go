package docker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/moby/moby/client"
)

// Start creates and starts a container. When Start fails, no container is left. When it returns,
// the container runs, but boxd perhaps does not: join boxd, then call Answered or PostMortem.
func (e *Engine) Start(ctx context.Context, s Spec) (*Container, error) {
	c := e.newContainer(s)
	up := c.withSharedBoxd
	if s.OwnBoxd {
		up = c.withOwnBoxd
	}
	err := up(ctx, e.liveRestore(ctx))
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
	if err := c.hear(ctx); err != nil && !notReady(err) {
		return err
	}
	return c.start(ctx)
}

// withSharedBoxd starts the container with the volume that containers share. If the volume turns
// out to be empty, withSharedBoxd fills it and makes the container again: the engine removes a
// container that did not start like one that has ended (AutoRemove).
func (c *Container) withSharedBoxd(ctx context.Context, liveRestore bool) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		seen := c.engine.fills(c.Boxd).done.Load()
		err := c.create(ctx, liveRestore)
		if err == nil {
			err = c.hear(ctx)
		}
		if err == nil || attempt > 1 && notReady(err) {
			err = c.start(ctx)
		}
		if attempt == attempts || !missingBoxd(err) && !notReady(err) {
			return err
		}
		if attempt > 1 {
			seen = math.MaxInt64 // the fill of another goroutine did not help: fill it here
		}
		if err := c.Remove(ctx); err != nil {
			return err
		}
		if err := c.engine.fillBoxd(ctx, c, seen); err != nil {
			return err
		}
	}
}

// hear listens to the last words of the container, which is about to be started.
func (c *Container) hear(ctx context.Context) (err error) {
	c.words.close()
	c.words, err = c.listen(ctx)
	return err
}

func (c *Container) start(ctx context.Context) error {
	_, err := c.engine.ContainerStart(ctx, c.ID, client.ContainerStartOptions{})
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "unable to find user"),
		strings.Contains(text, "unable to find group"),
		strings.Contains(text, "no matching entries in"):
		return fmt.Errorf("start container: image %q has no entry of that name in its "+
			"/etc/passwd or /etc/group: set Config.User to "+
			"a name that is there, or to numbers, \"uid\" or \"uid:gid\", which need none: %w",
			c.Config.Image, err)
	case noNetwork(text):
		return fmt.Errorf("start container: %w", missingNetwork{err})
	}
	return fmt.Errorf("start container: %w", err)
}

// notReady reports whether an engine did not attach to a container because it cannot be started.
// Podman prepares a container for that, and answers 409 if it has no boxd yet, among other things.
// What it is, only the start says, if it is asked in time: Podman is about to remove such a
// container (AutoRemove).
func notReady(err error) bool { return err != nil && strings.Contains(err.Error(), "received 409") }

// noNetwork reports whether an engine says that a container's network is not there: Docker when it
// starts the container, Podman when it creates it.
func noNetwork(text string) bool {
	return strings.Contains(text, "network") && strings.Contains(text, "not found")
}

// missingNetwork explains such an error.
type missingNetwork struct{ err error }

func (e missingNetwork) Error() string {
	return "there is no such network; docker network ls shows those there are, docker network " +
		"create makes one: " + e.err.Error()
}
func (e missingNetwork) Unwrap() error { return e.err }

// Answered is called when boxd has answered. It stops listening to the container's standard error.
func (c *Container) Answered() {
	c.words.close()
	c.words = nil
}
