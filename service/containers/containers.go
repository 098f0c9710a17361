package containers

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
)

// A Config says how a Place works. The zero value is the engine that the docker command would use.
type Config struct {
	// Docker is the engine's client, a *client.Client of github.com/moby/moby/client. The caller
	// closes it. Default: the engine that the docker command would use; see sshbox.Config.Docker.
	Docker sshbox.DockerClient
}

// A Place is a Docker engine as a place.Place.
type Place struct {
	config  Config
	client  *client.Client // nil means the default engine
	service string
	log     *slog.Logger

	mu     sync.Mutex
	engine *docker.Engine // nil before the first use
	info   *system.Info   // of the engine; nil before the first use
	reaped time.Time      // when Tidy last looked for images of Forks
}

var _ place.Place = (*Place)(nil)

// New returns the place of an engine. It does no I/O.
func New(c Config) *Place { return &Place{config: c} }

// The labels of a container.
const (
	serviceLabel = docker.ServiceLabel            // the Name of the service
	specLabel    = docker.ServiceLabel + ".spec"  // the ID of the spec
	madeLabel    = docker.ServiceLabel + ".made"  // the time of creation, in ns since 1970
	makerLabel   = docker.ServiceLabel + ".maker" // thisProcess of the process that made it
)

// thisProcess tells this process from later ones that have the same process id.
var thisProcess = rand.Text()

// Open implements place.Place. It does not connect to the engine, which may be down.
func (p *Place) Open(service string, log *slog.Logger) error {
	c, ok := p.config.Docker.(*client.Client)
	if p.config.Docker != nil && !ok {
		return fmt.Errorf("containers: Config.Docker: it is a %T: give a *client.Client of "+
			"github.com/moby/moby/client", p.config.Docker)
	}
	p.client, p.service, p.log = c, service, log
	return nil
}

// connect connects to the engine at its first call. Later calls return the same connection.
func (p *Place) connect(ctx context.Context) (*docker.Engine, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine != nil {
		return p.engine, nil
	}
	e, err := docker.Open(ctx, p.client)
	if err != nil {
		return nil, err
	}
	p.engine = e
	return e, nil
}

// Close implements place.Place.
func (p *Place) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine != nil {
		p.engine.Close()
	}
	return nil
}

// containerName returns the name of the container of a box.
func (p *Place) containerName(id string) string { return "sandshell-" + p.service + "-" + id }

// idOf returns the ID of the box whose container has a name. ok is false if the name is of no box
// of this service.
func (p *Place) idOf(containerName string) (id string, ok bool) {
	id, ok = strings.CutPrefix(containerName, p.containerName(""))
	return id, ok && place.ValidID(id)
}

// Create implements place.Place.
func (p *Place) Create(ctx context.Context, r place.Request) (place.Attached, string, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return nil, "", err
	}
	c := p.boxConfig(ctx, e, r)
	box, err := sshbox.New(ctx, c)
	if err != nil {
		return nil, "", takenError(r, c, err)
	}
	return box, box.ContainerID(), nil
}

// boxConfig returns the Config of a new box.
func (p *Place) boxConfig(ctx context.Context, e *docker.Engine, r place.Request) sshbox.Config {
	c := r.Config
	c.Docker, c.Keep, c.Name = e.Client, true, ""
	if r.ID != "" {
		c.Name = p.containerName(r.ID)
	}
	c.Labels = maps.Clone(c.Labels)
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	c.Labels[serviceLabel], c.Labels[specLabel] = p.service, r.Spec
	c.Labels[madeLabel] = strconv.FormatInt(r.Created.UnixNano(), 10)
	c.Labels[makerLabel] = thisProcess
	if c.Logger == nil {
		c.Logger = p.log
	}
	if r.Egress && !c.Outward {
		c.Outward = p.hasOutward(ctx, e, c)
	}
	return c
}

// takenError returns the error of making a box. It is place.ErrConflict if another box has the ID.
func takenError(r place.Request, c sshbox.Config, err error) error {
	if r.ID != "" && errdefs.IsConflict(err) && strings.Contains(err.Error(), c.Name) {
		return fmt.Errorf("%w: there is already a box %s (%v)", place.ErrConflict, r.ID, err)
	}
	return err
}

// Name implements place.Place.
func (p *Place) Name(ctx context.Context, handle, id string) error {
	e, err := p.connect(ctx)
	if err != nil {
		return err
	}
	_, err = e.ContainerRename(ctx, handle, client.ContainerRenameOptions{
		NewName: p.containerName(id)})
	if errdefs.IsConflict(err) {
		return fmt.Errorf("%w: there is already a box %s", place.ErrConflict, id)
	}
	return wrap("name the container", err)
}

// wrap puts a verb phrase before an error of the engine. If the engine did not find the container,
// the result is place.ErrNotFound.
func wrap(verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%s: %w", verb, place.ErrNotFound)
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// Attach implements place.Place.
func (p *Place) Attach(ctx context.Context, handle string) (place.Attached, error) {
	e, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	box, err := sshbox.Engine{Docker: e.Client, Logger: p.log}.Join(ctx, handle)
	if err != nil {
		return nil, wrap("attach", err)
	}
	return box, nil
}

// Remove implements place.Place.
func (p *Place) Remove(ctx context.Context, handle string) error {
	e, err := p.connect(ctx)
	if err != nil {
		return err
	}
	whole := context.WithoutCancel(ctx) // a removal that has begun is finished
	asking, cancel := context.WithTimeout(whole, removeLimit)
	defer cancel()
	image := "" // that the copies of a Fork share
	if i, err := e.ContainerInspect(asking, handle, client.ContainerInspectOptions{}); err == nil {
		image = docker.TemporaryOf(&i.Container)
	}
	if err := docker.Remove(ctx, e.Client, handle); err != nil {
		return fmt.Errorf("remove the container: %w", err)
	}
	ctx, cancel = context.WithTimeout(whole, removeLimit)
	defer cancel()
	if image != "" {
		if err := e.RemoveSnapshot(ctx, image); err != nil && !errdefs.IsConflict(err) {
			p.log.Warn("remove the image of a fork", "image", image, "error", err)
		}
	}
	notes, err := p.notes(ctx, e, handle)
	if err != nil {
		return err
	}
	return p.removeNotes(ctx, e, notes[handle])
}
