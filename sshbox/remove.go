package sshbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/remotebox"
)

// Reap removes containers whose owner has ended, if they have ended too or were never started. It
// returns how many it has removed.
//
// Reap leaves running boxes alone: they are kept, or end by themselves. It leaves a box of package
// service that has ended alone too, because the service may start it again. It also removes the
// containers that this program could not remove because the engine did not answer New or Close,
// whether they run or not, and the images of Forks whose program was killed. On this machine, Reap
// removes the directories of SSHConfig that killed programs of this user have left.
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

// Remove removes a box of any program by the container's id or name, whether it runs or not. A
// program that uses the box loses it. If there is no such container, Remove returns nil. If the
// container is not a box, Remove returns an error.
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

// Pruned is what Engine.Prune has removed.
type Pruned struct {
	Images  []string // the names of images with plugins, of BuildImage, and of snapshots
	Volumes []string // package caches, and boxd of other versions
}

// Prune removes what the engine keeps for later boxes: images with plugins (Config.Plugins), images
// of BuildImage, snapshots, package caches (Config.PackageCache), and volumes with boxd of other
// versions of this library. All of these but snapshots are made again when they are needed.
//
// If images are given, base images by name or id, Prune removes only what was made for those, and
// of BuildImage's images only the given ones. It leaves what a container uses.
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
