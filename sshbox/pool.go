package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sandshell/sandshell/internal/remotebox"
)

// A Pool has boxes ready that were made ahead, so that getting one takes milliseconds. It makes
// another in the background for each that it hands out. Its methods may be called from several
// goroutines.
type Pool struct {
	config Config
	boxes  *remotebox.Stock[*DockerSSHBox]
}

// A Handover is what the one who gets a box of a Pool brings along.
type Handover struct {
	// Env is added to the environment of the main session and of all that is started later,
	// "NAME=value". The engine does not see it.
	Env []string
	// Files are copied into the directory where sessions start. Default: none.
	Files fs.FS
}

// NewPool starts to make boxes of c, until size of them are ready. c.Name has to be empty: each box
// has a name of its own. A program that ends without Close leaves its boxes to end by themselves,
// as New says.
func NewPool(c Config, size int) (*Pool, error) {
	if c.Name != "" {
		return nil, fmt.Errorf("sshbox: the Config of a pool has the Name %q: leave it empty, "+
			"one name cannot be for several boxes", c.Name)
	}
	if size < 0 {
		return nil, fmt.Errorf("sshbox: a pool of %d boxes", size)
	}
	full, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return &Pool{config: c, boxes: remotebox.NewStock(remotebox.StockConfig[*DockerSSHBox]{
		Size: size, Logger: full.Logger,
		Make:  func(ctx context.Context) (*DockerSSHBox, error) { return New(ctx, c) },
		Close: func(b *DockerSSHBox) { b.discard() },
	})}, nil
}

// Get hands out a box, which is the caller's to close. It takes one that is ready and answers; one
// that has died meanwhile is removed. If there is none, Get makes one, as New does. When Get fails,
// it leaves no box behind.
func (p *Pool) Get(ctx context.Context, h Handover) (*DockerSSHBox, error) {
	box, err := remotebox.Take(ctx, h.Env, h.Files, p.take, (*DockerSSHBox).discard,
		func(box *DockerSSHBox, err error) {
			p.config.log().Warn("a box of the pool has died", "container", box.ContainerName(),
				"error", err)
		})
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return box, nil
}

// take takes a box that is ready, or makes one.
func (p *Pool) take(ctx context.Context) (box *DockerSSHBox, ready bool, err error) {
	if box, ready = p.boxes.Take(); ready {
		return box, true, nil
	}
	box, err = p.config.box(ctx)
	return box, false, err
}

// discard removes the container first, because boxd in it may not answer, and then closes the box.
func (b *DockerSSHBox) discard() error {
	return errors.Join(b.host.container.Remove(context.Background()), b.Close())
}

// Ready is how many boxes are ready.
func (p *Pool) Ready() int { return p.boxes.Ready() }

// Close removes the boxes that are ready, and makes no more. Those that were handed out stay. Get
// then makes each box itself.
func (p *Pool) Close() error {
	p.boxes.Close()
	return nil
}
