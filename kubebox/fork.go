package kubebox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/tempdir"
	"github.com/sandshell/sandshell/sandbox"
)

// forkPrefix begins the names of the directories with the snapshots of Forks.
const forkPrefix = "sandshell-fork-"

// Fork makes n copies of the box, each with its files and its sessions under their ids, and with
// the Config that the box was made with. The caller closes them; b goes on as before. Either all
// copies are made or none. What a copy would lack is an error, unless opts accept it: see
// [KubeBox.Snapshot]. Until the copies are made, a snapshot is in this machine's directory for
// temporary files.
//
// Fork fails for a box that Attach or Join has returned, or that a Pool has of another program,
// because the box's Config is not known. The copies know the plugins of Config.Plugins, and no
// others until InitPlugins is called again.
func (b *KubeBox) Fork(ctx context.Context, n int, opts ...sandbox.SessionOption) (
	[]*KubeBox, error) {
	boxes, err := b.forkAll(ctx, n, opts)
	if err = ctxerr.Explain(ctx, err); err != nil {
		return nil, fmt.Errorf("kubebox: fork: %w", err)
	}
	return boxes, nil
}

func (b *KubeBox) forkAll(ctx context.Context, n int, opts []sandbox.SessionOption) (
	[]*KubeBox, error) {
	if n < 1 {
		return nil, fmt.Errorf("%d copies: ask for 1 or more", n)
	}
	if _, err := b.copyConfig(""); err != nil {
		return nil, err
	}
	dir, err := tempdir.Make(forkPrefix)
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	s, err := b.snapshot(ctx, dir.Path, opts)
	if err != nil {
		return nil, err
	}
	c, err := b.copyConfig(s.ID)
	if err != nil {
		return nil, err
	}
	configs := slices.Repeat([]Config{c}, n)
	return remotebox.MakeAll(ctx, configs, newOf, func(box *KubeBox) {
		if err := box.discard(); err != nil {
			c.log().Warn("close a copy of a fork that has failed", "pod", box.PodName(), "error",
				err)
		}
	})
}

func newOf(ctx context.Context, c Config) (*KubeBox, error) { return c.box(ctx) }

// copyConfig returns the Config for a copy of the box.
func (b *KubeBox) copyConfig(id string) (Config, error) {
	if b.config == nil {
		return Config{}, errors.New("its Config is not known, because the box was attached to: " +
			"use Snapshot, and New with Config.Snapshot")
	}
	c := *b.config
	c.Snapshot, c.Name, c.pool = id, "", "" // a name is one box's
	return c, nil
}

// Back returns a new box of a snapshot, made with the Config of b, and then closes b. The new pod
// has a name of its own. If Back fails, b stays as it is. It fails for a box that Attach or Join
// has returned, because the box's Config is not known.
func (b *KubeBox) Back(ctx context.Context, s *Snapshot) (*KubeBox, error) {
	c, err := b.copyConfig(s.ID)
	var back *KubeBox
	if err == nil {
		back, err = c.box(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("kubebox: back to snapshot %s: %w", s.ID, err)
	}
	if err := b.Close(); err != nil {
		c.log().Warn("close the box that has gone back to a snapshot", "pod", b.PodName(),
			"error", err)
	}
	return back, nil
}
