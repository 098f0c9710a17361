package sshbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// Attach takes over a running box by the container's id or name. Session, Sessions, Job and Jobs
// return its sessions, with their directories, variables and unfinished commands, and its jobs,
// with their logs. Attach kills the box's Runs. If another program has the box, that program loses
// it: its calls return sandbox.ErrLost.
//
// This program owns the box from then on. Unless the box was made with Config.Keep, it ends when
// this program does. The box does not know its plugins until InitPlugins is called again.
func (e Engine) Attach(ctx context.Context, id string) (*DockerSSHBox, error) {
	return e.attach(ctx, id, remotebox.Alone)
}

// Join attaches to a running box beside the programs that have it already, which keep it. Up to 16
// programs may use one box, each with its own Runs, copies and connections. Sessions and jobs are
// shared by their ids: Session, Sessions, Job and Jobs return those of all programs. One program at
// a time uses a session. While its call is under way, calls of other programs return
// sandbox.ErrBusy. If it has ended, its unfinished commands go on: Wait returns their results. The
// logs of jobs can be read by all.
//
// Close of the returned box leaves everything running. Close of the box that [New] or
// [Engine.Attach] has returned removes the container for all. The box does not know its plugins
// until InitPlugins is called again.
func (e Engine) Join(ctx context.Context, id string) (*DockerSSHBox, error) {
	return e.attach(ctx, id, remotebox.Beside)
}

func (e Engine) attach(ctx context.Context, id string, way remotebox.Way) (*DockerSSHBox, error) {
	connect := func(ctx context.Context) (*dockerHost, error) {
		if id == "" {
			return nil, errors.New("the id is empty: List has them")
		}
		engine, err := openEngine(ctx, "Engine.Docker", e.Docker)
		if err != nil {
			return nil, err
		}
		container, err := engine.Find(ctx, id, e.log())
		if err != nil {
			engine.Close()
			return nil, err
		}
		h, err := connect(ctx, engine, container, way)
		if err != nil {
			engine.Close()
		}
		return h, err
	}
	if err := remotebox.CheckContext(ctx); err != nil {
		return nil, fmt.Errorf("sshbox: attach to box %q: %w", id, err)
	}
	box, h, err := remotebox.Attach(ctx, "DockerSSHBox", shellbox.Options{Logger: e.log()}, way,
		connect)
	if err != nil {
		return nil, fmt.Errorf("sshbox: attach to box %q: %w", id, err)
	}
	b := newDockerSSHBox(box, h)
	b.docker = e.Docker
	return b, nil
}
