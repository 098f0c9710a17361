package sshbox

import (
	"context"
	"fmt"

	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// Attach takes over a running box by the container's id or name: its sessions with their
// directories, variables and unfinished commands, and its jobs with their logs (Session, Sessions,
// Job, Jobs). Runs that were under way are killed. A program that had the box before loses it: its
// calls return sandbox.ErrLost.
//
// From then on the box is this program's. Unless it was made with Config.Keep, it ends when this
// program does. Call InitPlugins again for the box to know its plugins.
func (e Engine) Attach(ctx context.Context, id string) (*DockerSSHBox, error) {
	connect := func(ctx context.Context) (*dockerHost, error) {
		engine, err := openEngine(ctx, e.Docker)
		if err != nil {
			return nil, err
		}
		container, err := engine.Find(ctx, id, e.log())
		if err != nil {
			engine.Close()
			return nil, err
		}
		h, err := connect(ctx, engine, container)
		if err != nil {
			engine.Close()
		}
		return h, err
	}
	box, h, err := remotebox.Attach(ctx, "DockerSSHBox", shellbox.Options{Logger: e.log()}, connect)
	if err != nil {
		return nil, fmt.Errorf("sshbox: attach to box %q: %w", id, err)
	}
	return newDockerSSHBox(box, h), nil
}
