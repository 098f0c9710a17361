package sshbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/sandbox"
)

// A fork is what the boxes of a Fork share.
type fork struct {
	snapshot *Snapshot
	boxes    atomic.Int64 // that are not closed
	log      *slog.Logger
}

// removeForkLimit is how long the engine may take until it begins to remove a Fork's image.
const removeForkLimit = 30 * time.Second

// Fork makes n copies of the box, each with its files and its sessions under their ids, and with
// the Config that the box was made with. The caller closes them; b goes on as before. Either all
// copies are made or none. What a copy would lack is an error, unless opts accept it: see
// [DockerSSHBox.Snapshot].
//
// The copies share an image, which goes with the last of them. If this program is killed, [New] or
// [Engine.Reap] of another one removes the image later.
//
// Fork fails for a box that Attach or Join has returned, because the box's Config is not known: use
// ForkInto. The copies know the plugins of Config.Plugins, and no others until InitPlugins is
// called again.
func (b *DockerSSHBox) Fork(ctx context.Context, n int,
	opts ...sandbox.SessionOption) ([]*DockerSSHBox, error) {
	var boxes []*DockerSSHBox
	c, err := b.copyConfig("")
	if n < 1 {
		err = fmt.Errorf("%d copies: ask for 1 or more", n)
	}
	if err == nil {
		boxes, err = b.forkInto(ctx, slices.Repeat([]Config{c}, n), opts)
	}
	if err != nil {
		return nil, fmt.Errorf("sshbox: fork: %w", err)
	}
	return boxes, nil
}

// ForkInto is Fork with a Config for each copy. It works for boxes that Attach or Join has returned
// too. Image and Snapshot of a Config must be empty, and Docker is ignored: the copies have the
// box's files, and are on its engine. If a Config has Keep, the image of the copies goes when
// [Engine.Reap] finds that neither a copy nor this program is left.
func (b *DockerSSHBox) ForkInto(ctx context.Context, configs []Config,
	opts ...sandbox.SessionOption) ([]*DockerSSHBox, error) {
	boxes, err := b.forkInto(ctx, slices.Clone(configs), opts)
	if err != nil {
		return nil, fmt.Errorf("sshbox: fork: %w", err)
	}
	return boxes, nil
}

// forkInto is ForkInto. It changes the Configs.
func (b *DockerSSHBox) forkInto(ctx context.Context, configs []Config,
	opts []sandbox.SessionOption) ([]*DockerSSHBox, error) {
	if len(configs) == 0 {
		return nil, errors.New("there is no Config: give one for each copy")
	}
	for _, c := range configs {
		if c.Image != "" || c.Snapshot != "" {
			return nil, errors.New("Config.Image and Config.Snapshot: leave them out, because " +
				"the copies have the box's files")
		}
		if err := c.Check(); err != nil {
			return nil, err
		}
	}
	s, err := b.snapshot(ctx, true, opts)
	if err != nil {
		return nil, err
	}
	for i := range configs {
		configs[i].Snapshot, configs[i].Docker = s.ID, b.docker
	}
	f := &fork{snapshot: s, log: configs[0].log()}
	boxes, err := makeAll(ctx, configs)
	if err != nil {
		return nil, errors.Join(err, f.remove())
	}
	f.boxes.Store(int64(len(boxes)))
	for _, box := range boxes {
		box.fork = f
	}
	return boxes, nil
}

// makeAll makes a box of each Config. If one cannot be made, it closes the others.
func makeAll(ctx context.Context, configs []Config) ([]*DockerSSHBox, error) {
	return remotebox.MakeAll(ctx, configs, makeBox, func(box *DockerSSHBox) {
		if err := box.discard(); err != nil {
			configs[0].log().Warn("close a copy of a fork that has failed", "container",
				box.ContainerName(), "error", err)
		}
	})
}

// release is called for each box that has been closed.
func (f *fork) release() {
	if f == nil || f.boxes.Add(-1) > 0 {
		return
	}
	if err := f.remove(); err != nil {
		f.log.Warn("remove the image of a fork", "image", f.snapshot.ID, "error", err)
	}
}

// remove removes the image. If a box uses it that was detached from, Reap removes it later.
func (f *fork) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), removeForkLimit)
	defer cancel()
	err := f.snapshot.Remove(ctx)
	if errdefs.IsConflict(err) {
		return nil
	}
	return err
}
