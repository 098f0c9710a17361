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
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/boxd/bin"
	boxd "github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/sandbox"
)

var _ boxd.Controller = (*Container)(nil)

// Join executes boxd join in the container. Its streams are a connection to boxd.
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

// Control implements boxd.Controller. It attaches to the container's first process, which is boxd.
func (c *Container) Control(ctx context.Context) (boxd.Streams, error) {
	r, err := c.engine.ContainerAttach(ctx, c.ID, client.ContainerAttachOptions{Stream: true,
		Stdin: true, Stdout: true})
	if err != nil {
		return nil, fmt.Errorf("attach to the container: %w", err)
	}
	return newAttached(r.Conn, r.Reader, c.Logger), nil
}

// Diagnose implements boxd.Place: it asks the engine about the container.
func (c *Container) Diagnose(ctx context.Context) boxd.Diagnosis {
	inspected, err := c.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	state := inspected.Container.State
	switch {
	case errdefs.IsNotFound(err), err == nil && state != nil && !state.Running && !state.Restarting:
		return c.end(ctx, state)
	case err == nil && state != nil && state.Paused:
		return boxd.Diagnosis{Paused: true}
	}
	return boxd.Diagnosis{}
}

// end says how a container has ended. state is what the engine says of the container after its end;
// nil: the engine has removed the container. The engine's events say who ended it, even then.
func (c *Container) end(ctx context.Context, state *container.State) boxd.Diagnosis {
	since := time.Now().Add(-10 * time.Minute) // the engine's clock may differ
	if state != nil {
		if started, err := time.Parse(time.RFC3339Nano, state.StartedAt); err == nil {
			since = started
		}
	}
	events := c.lastEvents(ctx, since)
	died, code, oom := events.died, events.code, events.oom
	if state != nil {
		died, code, oom = true, state.ExitCode, oom || state.OOMKilled
	}
	limit := "the machine's memory"
	if c.Host.Memory > 0 {
		limit = fmt.Sprintf("its %d MiB", c.Host.Memory>>20)
	}
	switch {
	case oom && code == 137 && !events.killed: // oom alone may be about an earlier program
		return boxd.Diagnosis{Cause: sandbox.LostMemory,
			Lost: "out of memory: the container used up " + limit + " and was killed"}
	case code == 137 && events.died && !events.killed && !c.engine.saysNoKills(ctx):
		// Nobody in the container can kill process 1. If the control group is already gone,
		// containerd does not see that the kernel has killed for memory.
		return boxd.Diagnosis{Lost: "the container was killed, and the engine does not say by " +
			"whom: the kernel, for want of memory (" + limit + "), or somebody on the engine's " +
			"machine"}
	case died && code == 137:
		return boxd.Diagnosis{Lost: "the container was killed or removed",
			Cause: sandbox.LostRemoved}
	case died:
		cause := sandbox.LostUnknown // an engine forgets its events when it restarts
		if events.killed {
			cause = sandbox.LostRemoved
		} else if events.died {
			cause = sandbox.LostEnded
		}
		return boxd.Diagnosis{Lost: fmt.Sprintf("the container ended with status %d", code),
			Cause: cause}
	}
	return boxd.Diagnosis{Lost: "the container was removed", Cause: sandbox.LostRemoved}
}

// saysNoKills reports whether the engine's events may lack the signals that it has sent, as
// Podman's do.
func (e *Engine) saysNoKills(ctx context.Context) bool {
	podman, err := e.isPodman(ctx)
	return podman || err != nil
}

// An ending is what the engine's events say about a container's end. Docker keeps 256 events.
type ending struct {
	killed bool // the engine sent it a signal: docker stop, kill, rm -f
	oom    bool
	died   bool
	code   int
	gone   bool // the engine no longer answers
}

// eventsLimit is how long after a container's end the engine may take to report it as an event.
const eventsLimit = 2 * time.Second

func (c *Container) lastEvents(ctx context.Context, since time.Time) (e ending) {
	ctx, cancel := context.WithTimeout(ctx, eventsLimit)
	defer cancel()
	e = readEnding(c.engine.Events(ctx, client.EventsListOptions{
		Since:   fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()),
		Filters: client.Filters{}.Add("container", c.ID).Add("type", "container"),
	}))
	// An engine that is being stopped ends its containers.
	e.killed = e.killed || e.gone && ctx.Err() == nil
	return e
}

// killLimit is how long after a container's end the engine may take to report that it has killed
// the container. Docker sends the signal before it emits the event "kill", and boxd may have ended
// in between. The event "stop" comes when docker stop is done.
const killLimit = 500 * time.Millisecond

// readEnding reads a container's events up to its end.
func readEnding(events client.EventsResult) (e ending) {
	var late <-chan time.Time
	for {
		select {
		case m := <-events.Messages:
			switch m.Action {
			case "kill", "stop":
				e.killed = true
			case "oom":
				e.oom = true
			case "die":
				e.died, late = true, time.After(killLimit)
				e.code, _ = strconv.Atoi(m.Actor.Attributes["exitCode"])
			}
			if e.died && e.killed {
				return e
			}
		case <-late:
			return e
		case err := <-events.Err:
			// A refusal to send events does not mean that the engine is gone.
			e.gone = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
				client.IsErrConnectionFailed(err)
			return e
		}
	}
}

// PostMortem says why boxd has not answered, if the container has ended and its standard error
// tells. Otherwise it returns err, the error of joining boxd.
func (c *Container) PostMortem(ctx context.Context, err error) error {
	if !c.words.ended(ctx) {
		return err
	}
	said := c.words.Said()
	// Some engines do not pass on the message about a program that the machine cannot run.
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
	if state, inspectErr := c.endState(ctx); inspectErr != nil {
		err = inspectErr
	} else {
		err = errors.New(c.end(ctx, state).Lost)
	}
	if said != "" {
		err = fmt.Errorf("%w; it said %.300q", err, said)
	}
	return fmt.Errorf("it ended before boxd answered: %w", err)
}

// endState returns the state of a container that is ending, for end. The engine may notice the
// container's end only after its standard error has ended.
func (c *Container) endState(ctx context.Context) (*container.State, error) {
	const limit = 5 * time.Second
	waitCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	waiting := c.engine.ContainerWait(waitCtx, c.ID, client.ContainerWaitOptions{
		Condition: container.WaitConditionNotRunning})
	select {
	case <-waiting.Result:
	case err := <-waiting.Error:
		if errdefs.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("wait for the container's end: %w", err)
	}
	inspected, err := c.engine.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return nil, fmt.Errorf("inspect the container: %w", err)
	}
	return inspected.Container.State, nil
}

// wrongArchitecture returns an error if a message says that the machine cannot run boxd's program.
// Otherwise it returns nil.
func (c *Container) wrongArchitecture(said string) error {
	if !strings.Contains(strings.ToLower(said), "exec format error") {
		return nil
	}
	return fmt.Errorf("image %q is for linux/%s, and the engine's machine cannot run that (exec "+
		"format error): use an image for the machine's architecture (Config.Platform chooses), "+
		"or make the machine emulate this one (binfmt_misc with qemu)",
		c.Config.Image, c.Boxd.Arch)
}

// lastWords keeps what the main process prints on standard error before boxd answers.
type lastWords struct {
	*attached
	done chan struct{} // closed at the stream's end: the container has ended
}

// listen attaches to the container's standard error. It is called before the container starts.
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

// ended reports whether the container ends within two seconds. When a container ends, an exec in it
// fails before the engine notices the end.
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
