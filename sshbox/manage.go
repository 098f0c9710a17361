package sshbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// An Engine is a Docker engine with boxes on it, whoever made them. The zero value is the one that
// the docker command would use: DOCKER_HOST, DOCKER_CONTEXT or "docker context use" name it, else
// it is this machine's. Its methods may be called from several goroutines.
type Engine struct {
	Docker *client.Client // the engine to use; it stays yours to close
	Logger *slog.Logger   // for what Attach makes. Default: none
}

// A BoxInfo tells of a box.
type BoxInfo struct {
	ID    string // the container's
	Name  string // and its name
	Image string
	// as the engine has it: "running", "paused", "created", "exited", "dead", "removing", …
	State   string
	Created time.Time
	Keep    bool              // see Config.Keep
	Owner   Owner             // who made it; another may have attached to it since
	Labels  map[string]string // all of them
}

// An Owner is a process that made a box.
type Owner struct {
	// as os.Hostname has it there; in a container with " pid:[…]" behind it, its namespace of
	// process ids
	Host string
	PID  int
}

// Age is the time since the box was made.
func (b BoxInfo) Age() time.Duration { return time.Since(b.Created) }

// List finds the boxes of an engine, and what is left of them. It is Engine.List of the default
// engine.
func List(ctx context.Context) ([]BoxInfo, error) { return Engine{}.List(ctx) }

// Attach takes over a running box by the container's id or name. It is Engine.Attach on the default
// engine.
func Attach(ctx context.Context, id string) (*DockerSSHBox, error) {
	return Engine{}.Attach(ctx, id)
}

// Reap removes what is left of boxes whose owners have ended. It is Engine.Reap on the default
// engine.
func Reap(ctx context.Context) (removed int, err error) { return Engine{}.Reap(ctx) }

// Prune removes what is kept for boxes that are to come: images with plugins, built ones, and
// package caches. It is Engine.Prune on the default engine.
func Prune(ctx context.Context, images ...string) (Pruned, error) {
	return Engine{}.Prune(ctx, images...)
}

// open connects to the engine.
func (e Engine) open(ctx context.Context) (*docker.Engine, error) {
	opened, err := docker.Open(ctx, e.Docker)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return opened, nil
}

func (e Engine) log() *slog.Logger {
	return guard.Logger(e.Logger)
}

// ImageID returns the id of an image that the engine has, as docker inspect has it. If it has none
// of that name, the error is one of errdefs.IsNotFound (github.com/containerd/errdefs).
func (e Engine) ImageID(ctx context.Context, name string) (string, error) {
	engine, err := e.open(ctx)
	if err != nil {
		return "", err
	}
	defer engine.Close()
	id, err := engine.ImageID(ctx, name)
	if err != nil {
		return "", fmt.Errorf("sshbox: image %q: %w", name, err)
	}
	return id, nil
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
			ID: b.ID, Name: b.Name, Image: b.Image, State: b.State, Created: b.Created,
			Keep:  b.Keep,
			Owner: Owner{Host: b.Host, PID: b.PID}, Labels: b.Labels,
		})
	}
	return boxes, nil
}

// Attach takes over a running box by the container's id or name: its sessions, with their
// directories, variables and unfinished commands, and its jobs with their logs (Session, Sessions,
// Job, Jobs). Runs that were under way are ended. Whoever had the box before, if still there, loses
// it: their calls return sandbox.ErrLost. The box is this program's from then on, with all that
// this means: unless it was made with Config.Keep, it ends when this program does. Of its plugins
// InitPlugins knows again when it is called.
func (e Engine) Attach(ctx context.Context, id string) (*DockerSSHBox, error) {
	log := e.log()
	fail := func(err error) (*DockerSSHBox, error) {
		return nil, fmt.Errorf("sshbox: attach to box %q: %w", id, err)
	}
	h, err := e.connect(ctx, id, log)
	if err != nil {
		return fail(err)
	}
	box, err := shellbox.Attach(ctx, h, shellbox.Options{Logger: log})
	if err == nil {
		return newDockerSSHBox(box, h), nil
	}
	if ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, connectLimit)
		defer cancel()
		if lost := h.Lost(asking); lost != nil {
			err = lost
		}
	}
	h.Abandon() // nobody has asked for the box's end
	h.Close()
	return fail(err)
}

// connectLimit bounds Attach's connecting.
const connectLimit = 10 * time.Second

// connect connects to the box of that id or name, as its new owner.
func (e Engine) connect(ctx context.Context, id string, log *slog.Logger) (*dockerHost, error) {
	noAnswer := &sandbox.LostError{Box: "DockerSSHBox",
		Reason: fmt.Sprintf("no answer within %v", connectLimit), Cause: sandbox.LostConnection}
	connecting, cancel := ctxerr.WithLimit(ctx, connectLimit, noAnswer)
	defer cancel()
	why := func(err error) error {
		// an engine's client says context.DeadlineExceeded, whatever the cause
		if connecting.Err() != nil {
			return ctxerr.Of(connecting)
		}
		return err
	}
	engine, err := docker.Open(connecting, e.Docker)
	if err != nil {
		return nil, why(err)
	}
	container, err := engine.Find(connecting, id, log)
	var h *dockerHost
	if err == nil {
		h, err = connect(connecting, engine, container)
	}
	if err != nil {
		engine.Close()
		return nil, why(err)
	}
	return h, nil
}

// Reap removes what is left of boxes whose owners have ended: containers that have ended too, or
// were never started. A box that runs is left alone: it is kept, or ends by itself; so is one of
// package service that has ended, which the service may start again. What this program could not
// remove, because the engine did not answer a New that failed or a Close, is removed too, whether
// it runs or not. It returns how many it has removed. What killed programs of this user have left
// of SSHConfig on this machine goes too.
func (e Engine) Reap(ctx context.Context) (removed int, err error) {
	engine, err := e.open(ctx)
	if err != nil {
		return 0, err
	}
	defer engine.Close()
	removed, err = engine.Reap(ctx, e.Logger)
	if err = errors.Join(err, remotebox.ReapSSHConfigs(e.log())); err != nil {
		err = fmt.Errorf("sshbox: %w", err)
	}
	return removed, err
}

// Remove removes a box by the container's id or name, whoever made it and whether it runs or not. A
// program that works with it loses it. One that is not there is no error; a container that is no
// box is.
func (e Engine) Remove(ctx context.Context, id string) error {
	engine, err := e.open(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := engine.RemoveBox(ctx, id); err != nil {
		return fmt.Errorf("sshbox: %w", err)
	}
	return nil
}

// Pruned is what Prune has removed.
type Pruned struct {
	Images  []string // with plugins, and those of Build, by name
	Volumes []string // package caches, and boxd of other versions
}

// Prune removes what is kept on the engine for boxes that are to come, and would be made anew for
// them: images with plugins (Config.Plugins), images of Build, package caches
// (Config.PackageCache), and volumes with boxd of other versions of this library. With images, base
// images by name or id, only what was made for these, and of Build's only those that are named.
// What a container uses stays.
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
