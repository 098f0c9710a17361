package sshbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/engine"
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

// Prune removes what is kept for boxes that are to come: images with plugins, and package caches. It is Engine.Prune on the default engine.
func Prune(ctx context.Context, images ...string) (Pruned, error) {
	return Engine{}.Prune(ctx, images...)
}

// open connects to the engine.
func (e Engine) open(ctx context.Context) (*engine.Engine, error) {
	opened, err := engine.Open(ctx, e.Docker)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return opened, nil
}

// List finds the boxes on the engine, and what is left of them, the youngest first.
func (e Engine) List(ctx context.Context) ([]BoxInfo, error) {
	engine, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	list, err := engine.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	var boxes []BoxInfo
	for _, b := range list {
		boxes = append(boxes, BoxInfo{
			ID: b.ID, Name: b.Name, Image: b.Image, State: b.State, Created: b.Created, Keep: b.Keep,
			Owner: Owner{Host: b.Host, PID: b.PID}, Labels: b.Labels,
		})
	}
	return boxes, nil
}

// Attach takes over a running box by the container's id or name: its sessions, with their directories, variables and unfinished commands, and its
// jobs with their logs (Session, Sessions, Job, Jobs). Runs that were under way are ended. Whoever had the box before, if still there, loses it: their
// calls return sandbox.ErrLost. The box is this program's from then on, with all that this means: unless it was made with Config.Keep, it ends when
// this program does. Of its plugins InitPlugins knows again when it is called.
func (e Engine) Attach(ctx context.Context, id string) (*DockerSSHBox, error) {
	log := e.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	engine, err := e.open(ctx)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*DockerSSHBox, error) {
		engine.Close()
		return nil, fmt.Errorf("sshbox: attach to box %q: %w", id, err)
	}
	container, err := engine.Find(ctx, id, log)
	if err != nil {
		return fail(err)
	}
	connecting, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	h, err := connect(connecting, engine, container)
	if err != nil {
		return fail(err)
	}
	box, err := shellbox.Attach(ctx, h, shellbox.Options{Logger: log})
	if err != nil {
		h.Abandon() // nobody has asked for the box's end
		h.Close()
		return nil, fmt.Errorf("sshbox: attach to box %q: %w", id, err)
	}
	return newDockerSSHBox(box, h), nil
}

// connectLimit bounds Attach's connecting.
const connectLimit = time.Minute

// Reap removes what is left of boxes whose owners have ended: containers that have ended too, or were never started. A box that runs is left alone: it
// is kept, or ends by itself. It returns how many it has removed.
func (e Engine) Reap(ctx context.Context) (removed int, err error) {
	engine, err := e.open(ctx)
	if err != nil {
		return 0, err
	}
	defer engine.Close()
	if removed, err = engine.Reap(ctx, e.Logger); err != nil {
		err = fmt.Errorf("sshbox: %w", err)
	}
	return removed, err
}

// Pruned is what Prune has removed.
type Pruned struct {
	Images  []string // with plugins, by name
	Volumes []string // package caches, and boxd of other versions
}

// Prune removes what is kept on the engine for boxes that are to come, and would be made anew for them: images with plugins
// (Config.Plugins), package caches (Config.PackageCache), and volumes with boxd of other versions of this library. With images, base images by
// name or id, only what was made for these. What a container uses stays.
func (e Engine) Prune(ctx context.Context, images ...string) (Pruned, error) {
	engine, err := e.open(ctx)
	if err != nil {
		return Pruned{}, err
	}
	defer engine.Close()
	pruned, err := engine.Prune(ctx, images)
	if err != nil {
		err = fmt.Errorf("sshbox: %w", err)
	}
	return Pruned(pruned), err
}
