package sshbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/sandshell/sandshell/internal/remotebox"
)

// A Pool makes boxes ahead, so that Get takes milliseconds. For each box that it hands out, it
// makes another in the background. Its methods may be called from several goroutines.
type Pool struct {
	config Config
	boxes  *remotebox.Stock[*DockerSSHBox]
}

// A Handover is what a box of a Pool gets when Get hands it out.
type Handover struct {
	// Env is added to the environment of the main session and of all that is started later, each
	// "NAME=value". The engine does not see it.
	Env []string
	// Files are copied into the directory where sessions start. If Files is nil, nothing is copied.
	Files fs.FS
}

// NewPool starts to make boxes of c, until size of them are ready. c.Name must be empty, because
// each box has a name of its own. If the program ends without Close, the boxes end by themselves,
// as New says.
func NewPool(c Config, size int) (*Pool, error) {
	if c.Name != "" {
		return nil, fmt.Errorf("sshbox: Config.Name: %q cannot name several boxes: leave it empty",
			c.Name)
	}
	if size < 0 {
		return nil, fmt.Errorf("sshbox: NewPool: size: %d is negative: give 0 or more", size)
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

// Get hands out a box, which the caller closes. It takes a box that is ready and answers, and
// removes those that have died. If no box is ready, Get makes one, as New does. If Get fails, it
// leaves no box behind.
func (p *Pool) Get(ctx context.Context, h Handover) (*DockerSSHBox, error) {
	box, err := remotebox.HandOut(ctx, h.Env, h.Files, p.takeOrMake, (*DockerSSHBox).discard,
		func(box *DockerSSHBox, err error) {
			p.config.log().Warn("a box of the pool has died", "container", box.ContainerName(),
				"error", err)
		})
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	return box, nil
}

// takeOrMake takes a box that is ready, or makes one.
func (p *Pool) takeOrMake(ctx context.Context) (box *DockerSSHBox, ready bool, err error) {
	if box, ready = p.boxes.Take(); ready {
		return box, true, nil
	}
	box, err = makeBox(ctx, p.config)
	return box, false, err
}

// discard removes the container and then closes the box. Close alone would wait for boxd, which may
// not answer.
func (b *DockerSSHBox) discard() error {
	return errors.Join(b.host.container.Remove(context.Background()), b.Close())
}

// Ready returns how many boxes are ready.
func (p *Pool) Ready() int { return p.boxes.Ready() }

// Close removes the boxes that are ready. Boxes that were handed out stay. After Close the Pool
// makes no box ahead, and Get makes each box when it is called.
func (p *Pool) Close() error {
	p.boxes.Close()
	return nil
}
