package sshbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// An Engine is a Docker engine with boxes on it, whoever made them. The zero value is the engine that DOCKER_HOST and its like name, or the
// one of this machine. Its methods may be called from several goroutines.
type Engine struct {
	Docker *client.Client // the engine to use; it stays yours to close
	Logger *slog.Logger   // for what Attach makes. Default: none
}

// A BoxInfo tells of a box.
type BoxInfo struct {
	ID      string // the container's
	Name    string // and its name
	Image   string
	Server  Server
	State   string // as the engine has it: "running", "paused", "created", "exited", "dead", "removing", …
	Created time.Time
	Keep    bool              // see Config.Keep
	Owner   Owner             // who made it; another may have attached to it since
	Labels  map[string]string // all of them
}

// An Owner is a process that made a box.
type Owner struct {
	Host string // as os.Hostname has it there
	PID  int
}

// Age is the time since the box was made.
func (b BoxInfo) Age() time.Duration { return time.Since(b.Created) }

// List finds the boxes of an engine, and what is left of them. It is Engine.List of the default engine.
func List(ctx context.Context) ([]BoxInfo, error) { return Engine{}.List(ctx) }

// Attach takes over a running box by the container's id or name. It is Engine.Attach on the default engine.
func Attach(ctx context.Context, id string) (*DockerSSHBox, error) { return Engine{}.Attach(ctx, id) }

// Reap removes what is left of boxes whose owners have ended. It is Engine.Reap on the default engine.
func Reap(ctx context.Context) (removed int, err error) { return Engine{}.Reap(ctx) }

// List finds the boxes on the engine, and what is left of them, the youngest first.
func (e Engine) List(ctx context.Context) ([]BoxInfo, error) {
	engine, err := openEngine(ctx, e.Docker)
	if err != nil {
		return nil, err
	}
	defer engine.close()
	return engine.list(ctx)
}

func (e *engine) list(ctx context.Context) ([]BoxInfo, error) {
	list, err := e.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", "sandshell.box")})
	if err != nil {
		return nil, fmt.Errorf("list boxes: %w", err)
	}
	var boxes []BoxInfo
	for _, c := range list.Items {
		if c.Labels["sandshell.box"] == "" { // somebody's container of an image with plugins
			continue
		}
		box := BoxInfo{
			ID: c.ID, Image: c.Image, State: string(c.State), Created: time.Unix(c.Created, 0), Labels: c.Labels,
			Server: Server(c.Labels["sandshell.server"]), Keep: c.Labels["sandshell.keep"] != "",
			Owner: Owner{Host: c.Labels["sandshell.host"]},
		}
		box.Owner.PID, _ = strconv.Atoi(c.Labels["sandshell.pid"])
		if len(c.Names) > 0 {
			box.Name = c.Names[0][1:] // the engine puts a slash before it
		}
		boxes = append(boxes, box)
	}
	return boxes, nil
}

// Attach takes over a running box by the container's id or name: its sessions, with their directories, variables and unfinished commands, and its
// jobs with their logs (Session, Sessions, Job, Jobs). Runs that were under way are ended. Whoever had the box before, if still there, loses it: their
// calls return sandbox.ErrLost. The box is this program's from then on, with all that this means: unless it was made with Config.Keep, it ends when
// this program does. Of its plugins InitPlugins knows again when it is called. A box whose server is OpenSSH cannot be taken over.
func (e Engine) Attach(ctx context.Context, id string) (_ *DockerSSHBox, err error) {
	log := e.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	engine, err := openEngine(ctx, e.Docker)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			engine.close()
		}
	}()
	inspected, err := engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	c := inspected.Container
	switch {
	case errdefs.IsNotFound(err):
		return nil, fmt.Errorf("attach to box %q: there is no such container; sshbox.List shows the boxes there are: %w", id, err)
	case err != nil:
		return nil, fmt.Errorf("attach to box %q: %w", id, err)
	case c.Config == nil || c.Config.Labels["sandshell.box"] == "":
		return nil, fmt.Errorf("attach to box %q: it is a container, but not one of sandshell's", id)
	case c.Config.Labels["sandshell.server"] != string(Boxd):
		return nil, fmt.Errorf("attach to box %q: %w: its server is %s, which ends with its connection", id, errors.ErrUnsupported, c.Config.Labels["sandshell.server"])
	case c.State == nil || !c.State.Running:
		return nil, fmt.Errorf("attach to box %q: it has ended", id)
	}
	linger, err := time.ParseDuration(c.Config.Labels["sandshell.linger"])
	if err != nil {
		linger = defaultLinger
	}
	handle := &containerHandle{
		engine: engine, image: c.Config.Image, id: c.ID, name: c.Name[1:], box: c.Config.Labels["sandshell.box"],
		keep: c.Config.Labels["sandshell.keep"] != "",
	}
	if c.HostConfig != nil {
		handle.memory = c.HostConfig.Memory
	}
	h, err := newBoxdHost(handle, log)
	if err != nil {
		return nil, err
	}
	connecting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := h.connect(connecting, linger); err != nil {
		return nil, fmt.Errorf("attach to box %q: %w", id, err)
	}
	h.sweeper = engine.sweeper(ctx, log)
	box, err := shellbox.Attach(ctx, h, shellbox.Options{Logger: log})
	if err != nil {
		h.leave() // nobody has asked for the box's end
		h.Close()
		return nil, err
	}
	return newDockerSSHBox(box, h), nil
}

// reapAge is how old a container has to be that was never started, if nobody here can tell whether its owner still means to.
const reapAge = 10 * time.Minute

// Reap removes what is left of boxes whose owners have ended: containers that have ended too, or were never started. A box that runs is left alone: it
// is kept, or ends by itself. It returns how many it has removed.
func (e Engine) Reap(ctx context.Context) (removed int, err error) {
	engine, err := openEngine(ctx, e.Docker)
	if err != nil {
		return 0, err
	}
	defer engine.close()
	return engine.reap(ctx, e.Logger)
}

func (e *engine) reap(ctx context.Context, log *slog.Logger) (removed int, err error) {
	boxes, err := e.list(ctx)
	if err != nil {
		return 0, err
	}
	host, _ := os.Hostname()
	var errs []error
	for _, b := range boxes {
		ours := b.Owner.Host == host && b.Owner.PID > 0
		switch {
		case b.State != "exited" && b.State != "created" && b.State != "dead":
			continue
		case ours && !gone(b.Owner.PID):
			continue
		case !ours && b.State == "created" && b.Age() < reapAge:
			continue
		}
		if log != nil {
			log.Debug("removing what is left of a box", "container", b.ID, "name", b.Name, "owner", b.Owner)
		}
		// Not Force: it has ended.
		_, err := e.ContainerRemove(ctx, b.ID, client.ContainerRemoveOptions{RemoveVolumes: true})
		switch {
		case err == nil:
			removed++
		case errdefs.IsNotFound(err), errdefs.IsConflict(err): // another is removing it
		default:
			errs = append(errs, fmt.Errorf("remove container %s: %w", b.Name, err))
		}
	}
	return removed, errors.Join(errs...)
}
