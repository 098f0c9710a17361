package sshbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/remotebox"
)

// Reap removes containers that boxes have left: those that have ended, or were never started, and
// whose owner has ended. It returns how many it has removed.
//
// A box that runs is left alone: it is kept, or ends by itself. A box of package service that has
// ended is left alone too, because the service may start it again. Containers that this program
// could not remove, because the engine did not answer New or Close, are removed whether they run or
// not. Reap also removes from this machine what killed programs of this user have left of
// SSHConfig.
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
// program that uses the box loses it. Remove returns nil if there is no such container, and an
// error if the container is not a box.
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
	Images  []string // images with plugins, and those of Build, by name
	Volumes []string // package caches, and boxd of other versions
}

// Prune removes what the engine keeps for later boxes: images with plugins (Config.Plugins), images
// of Build, package caches (Config.PackageCache), and volumes with boxd of other versions of this
// library. It would all be made again when it is needed.
//
// If images are given, base images by name or id, Prune removes only what was made for those, and
// of Build's images only those that are given. It leaves what a container uses.
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
