package containers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
)

// Fork implements place.Place, by [sshbox.DockerSSHBox.ForkInto]. The copies share an image, which
// holds the values of all variables of the sessions in a file that only root can read. Remove of
// the last copy removes it.
func (p *Place) Fork(ctx context.Context, from place.Attached, requests []place.Request,
	accept sandbox.LossKind) ([]place.Created, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	box, ok := from.(*sshbox.DockerSSHBox)
	if !ok {
		return nil, fmt.Errorf("%w: a %T is no container", errors.ErrUnsupported, from)
	}
	configs := make([]sshbox.Config, len(requests))
	for i, r := range requests {
		configs[i] = p.boxConfig(ctx, e, r)
		configs[i].Image, configs[i].Snapshot = "", ""
	}
	boxes, err := box.ForkInto(ctx, configs, sandbox.Accept(accept))
	if err != nil {
		for i, r := range requests {
			err = takenError(r, configs[i], err)
		}
		return nil, err
	}
	all := make([]place.Created, len(boxes))
	for i, b := range boxes {
		all[i] = place.Created{Box: b, Handle: b.ContainerID(), Kept: place.Kept(b.Kept())}
	}
	return all, nil
}

// reapEvery is how often Tidy looks for images of Forks: killed processes leave few.
const reapEvery = 10 * time.Minute

// tidyForks removes the images of Forks that no box uses, and whose process was killed.
func (p *Place) tidyForks(ctx context.Context, e *docker.Engine) error {
	p.mu.Lock()
	due := time.Since(p.reaped) >= reapEvery
	p.mu.Unlock()
	if !due {
		return nil
	}
	if err := e.ReapSnapshots(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	p.reaped = time.Now()
	p.mu.Unlock()
	return nil
}
