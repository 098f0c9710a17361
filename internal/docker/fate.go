package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	boxd "github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/sandbox"
)

var _ boxd.Controller = (*Container)(nil)

// Join executes boxd join in the container: its streams are a connection to boxd.
func (c *Container) Join(ctx context.Context) (boxd.Streams, error) {
	created, err := c.engine.ExecCreate(ctx, c.ID, client.ExecCreateOptions{
		AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Cmd: []string{wire.Path, "join", c.Box},
	})
	if err != nil {
		return nil, fmt.Errorf("execute boxd join in the container: %w", err)
	}
	r, err := c.engine.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, fmt.Errorf("execute boxd join in the container: %w", err)
	}
	return newAttached(r.Conn, r.Reader, c.Logger), nil
}

// Control implements boxd.Controller: boxd is the container's first process.
func (c *Container) Control(ctx context.Context) (boxd.Streams, error) {
	r, err := c.engine.ContainerAttach(ctx, c.ID, client.ContainerAttachOptions{Stream: true,
		Stdin: true, Stdout: true})
	if err != nil {
		return nil, fmt.Errorf("attach to the container: %w", err)
	}
	return newAttached(r.Conn, r.Reader, c.Logger), nil
}

// Fate implements boxd.Place: it asks the engine about the container.
func (c *Container) Fate(ctx context.Context) boxd.Fate {
	inspected, err := c.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	state := inspected.Container.State
	switch {
	case errdefs.IsNotFound(err), err == nil && state != nil && !state.Running && !state.Restarting:
		return c.end(ctx)
	case err == nil && state != nil && state.Paused:
		return boxd.Fate{Paused: true}
	}
	return boxd.Fate{}
}

// end says how a container has ended. If the engine has removed it already, the engine's events
// still tell, which also say who ended it.
func (c *Container) end(ctx context.Context) boxd.Fate {
	inspected, err := c.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	state := inspected.Container.State
	if err == nil && state != nil && state.Running {
		return boxd.Fate{Lost: "the container was restarted: what ran in it has ended",
			Cause: sandbox.LostRemoved}
	}
	since := time.Now().Add(-10 * time.Minute) // the engine's clock need not be ours
	if err == nil && state != nil {
		if started, err := time.Parse(time.RFC3339Nano, state.StartedAt); err == nil {
			since = started
		}
	}
	told := c.lastEvents(ctx, since)
	died, code, oom := told.died, told.code, told.oom
	if err == nil && state != nil {
		died, code, oom = true, state.ExitCode, oom || state.OOMKilled
	}
	limit := "the machine's memory"
	if c.Host.Memory > 0 {
		limit = fmt.Sprintf("its %d MiB", c.Host.Memory>>20)
	}
	switch {
	case oom && code == 137 && !told.killed: // oom may be about a program of long ago
		return boxd.Fate{Lost: "out of memory: the container used up " + limit + " and was killed",
			Cause: sandbox.LostMemory}
	case code == 137 && told.died && !told.killed && !c.engine.saysNoKills(ctx):
		// Nobody inside can kill process 1. containerd loses what the kernel says of memory if the
		// control group is gone by then.
		return boxd.Fate{Lost: "the container was killed, and the engine does not say by whom: " +
			"the kernel, for want of memory (" + limit + "), or somebody on the engine's machine"}
	case died && code == 137:
		return boxd.Fate{Lost: "the container was killed or removed", Cause: sandbox.LostRemoved}
	case died:
		cause := sandbox.LostUnknown // an engine that was restarted has forgotten
		if told.killed {
			cause = sandbox.LostRemoved
		} else if told.died {
			cause = sandbox.LostEnded
		}
		return boxd.Fate{Lost: fmt.Sprintf("the container ended with status %d", code),
			Cause: cause}
	}
	return boxd.Fate{Lost: "the container was removed", Cause: sandbox.LostRemoved}
}

// saysNoKills reports whether the engine is one that does not say what it has killed itself.
func (e *Engine) saysNoKills(ctx context.Context) bool {
	podman, err := e.isPodman(ctx)
	return podman || err != nil
}

// An ending is what the engine's events say of a container's end. Docker keeps the last 256 events.
type ending struct {
	killed bool // the engine sent it a signal: docker stop, kill, rm -f
	oom    bool
	died   bool
	code   int
	gone   bool // the engine no longer answers
}

// endLimit is how long an end that is seen may take to be an event.
const endLimit = 2 * time.Second

func (c *Container) lastEvents(ctx context.Context, since time.Time) (e ending) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	e = readEnding(c.engine.Events(ctx, client.EventsListOptions{
		Since:   fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()),
		Filters: client.Filters{}.Add("container", c.ID).Add("type", "container"),
	}))
	// an engine that is being stopped ends its containers
	e.killed = e.killed || e.gone && ctx.Err() == nil
	return e
}

// whoLimit is how long behind a container's end its events may say that it was the engine's doing.
// Docker sends the signal before it says so, and boxd may have ended by then; docker stop has its
// own event when all is done.
const whoLimit = 500 * time.Millisecond

// readEnding reads a container's events up to its end.
func readEnding(events client.EventsResult) (e ending) {
	var who <-chan time.Time
	for {
		select {
		case m := <-events.Messages:
			switch m.Action {
			case "kill", "stop":
				e.killed = true
			case "oom":
				e.oom = true
			case "die":
				e.died, who = true, time.After(whoLimit)
				e.code, _ = strconv.Atoi(m.Actor.Attributes["exitCode"])
			}
			if e.died && e.killed {
				return e
			}
		case <-who:
			return e
		case err := <-events.Err:
			// not: it refuses to say
			e.gone = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
				client.IsErrConnectionFailed(err)
			return e
		}
	}
}

// PostMortem says why boxd has not answered, as far as the container's last words tell. err is the
// error of joining it.
func (c *Container) PostMortem(ctx context.Context, err error) error {
	if !c.words.ended(ctx) {
		return err
	}
	said := c.words.Said()
	// some engines do not pass on the message about a program that the machine cannot run
	if said == "" {
		if v, err := c.engine.ServerVersion(ctx, client.ServerVersionOptions{}); err == nil {
			if b := bin.For(v.Arch); b != nil && b.Arch != c.Boxd.Arch {
				said = "exec format error"
			}
		}
	}
	if why := c.wrongArchitecture(said); why != nil {
		return why
	}
	err = errors.New(c.end(ctx).Lost)
	if said != "" {
		err = fmt.Errorf("%w; it said %.300q", err, said)
	}
	return fmt.Errorf("it ended before boxd answered: %w", err)
}

// wrongArchitecture explains the message of a container that ended, or did not start, because its
// machine cannot run boxd. For any other message it returns nil.
func (c *Container) wrongArchitecture(said string) error {
	if !strings.Contains(strings.ToLower(said), "exec format error") {
		return nil
	}
	return fmt.Errorf("image %q says that it is for linux/%s, and the engine's machine does not "+
		"run programs for that (exec format error): "+
		"use an image for the machine's own architecture (Config.Platform chooses), or have the "+
		"machine emulate this one (binfmt_misc with qemu)",
		c.Config.Image, c.Boxd.Arch)
}

// lastWords are what the main process says on its standard error before boxd answers.
type lastWords struct {
	*attached
	done chan struct{} // closed at the stream's end: the container has ended
}

// listen is to be called before the container starts.
func (c *Container) listen(ctx context.Context) (*lastWords, error) {
	r, err := c.engine.ContainerAttach(ctx, c.ID, client.ContainerAttachOptions{Stream: true,
		Stderr: true})
	if err != nil {
		return nil, fmt.Errorf("attach to container: %w", err)
	}
	w := &lastWords{newAttached(r.Conn, r.Reader, slog.New(slog.DiscardHandler)),
		make(chan struct{})}
	go func() {
		io.Copy(io.Discard, w)
		close(w.done)
	}()
	return w, nil
}

// ended waits a while for the container's end. (When a container ends, an exec in it fails before
// the engine notices the end.)
func (w *lastWords) ended(ctx context.Context) bool {
	if w == nil {
		return false
	}
	select {
	case <-w.done:
		return true
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	return false
}

func (w *lastWords) close() {
	if w != nil {
		w.attached.Close()
		<-w.done
	}
}
