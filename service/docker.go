package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/sshbox"
)

// Docker returns the Place of a Docker engine. The client stays the caller's to close. If it is
// nil, the engine is the one that DOCKER_HOST and its like name, else that of this machine.
func Docker(docker *client.Client) place.Place { return &dockerPlace{docker: docker} }

// A dockerPlace is a Docker engine as a Place.
//
// The container of a box is named sandshell-SERVICE-ID. The engine gives a name to one container
// only, so two processes that start the same ID get one box. The name of a box in a pool has no ID;
// the box gets its own name last. Labels of a container never change. What changes is in the labels
// of a volume that nobody mounts, a note: see dockerNote.
type dockerPlace struct {
	docker  *client.Client
	service string
	log     *slog.Logger

	mu     sync.Mutex
	engine *docker.Engine // nil before the first use
}

// The labels of a container.
const (
	serviceLabel = docker.ServiceLabel           // Config.Name
	specLabel    = docker.ServiceLabel + ".spec" // the Spec's ID
	madeLabel    = docker.ServiceLabel + ".made" // when, in nanoseconds since 1970
	// the process that made it: a later one may have the same id
	makerLabel = docker.ServiceLabel + ".maker"
)

// thisProcess is makerLabel's value here.
var thisProcess = rand.Text()

// foreignAge is how old a box of a pool is whose maker, on another machine, cannot be there any
// more: pools make their boxes anew before (poolAge).
const foreignAge = 24 * time.Hour

// Open implements Place. It does not ask the engine, which may come later.
func (p *dockerPlace) Open(service string, log *slog.Logger) error {
	p.service, p.log = service, log
	return nil
}

// open connects to the engine, the first time.
func (p *dockerPlace) open(ctx context.Context) (*docker.Engine, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine != nil {
		return p.engine, nil
	}
	e, err := docker.Open(ctx, p.docker)
	if err != nil {
		return nil, err
	}
	p.engine = e
	return e, nil
}

// Close implements Place.
func (p *dockerPlace) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine != nil {
		p.engine.Close()
	}
	return nil
}

func (p *dockerPlace) prefix() string { return "sandshell-" + p.service + "-" }

// Create implements Place.
func (p *dockerPlace) Create(ctx context.Context, r place.Request) (place.Attached, string, error) {
	e, err := p.open(ctx)
	if err != nil {
		return nil, "", err
	}
	c := r.Config
	c.Docker, c.Keep, c.Name = e.Client, true, ""
	if r.ID != "" {
		c.Name = p.prefix() + r.ID
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
	box, err := sshbox.New(ctx, c)
	switch {
	case err == nil:
		return box, box.ContainerID(), nil
	case r.ID != "" && errdefs.IsConflict(err) && strings.Contains(err.Error(), c.Name):
		return nil, "", fmt.Errorf("%w: there is a box %s already (%v)", ErrConflict, r.ID, err)
	}
	return nil, "", err
}

// Name implements Place.
func (p *dockerPlace) Name(ctx context.Context, handle, id string) error {
	e, err := p.open(ctx)
	if err != nil {
		return err
	}
	_, err = e.ContainerRename(ctx, handle, client.ContainerRenameOptions{NewName: p.prefix() + id})
	if errdefs.IsConflict(err) {
		return fmt.Errorf("%w: there is a box %s already", ErrConflict, id)
	}
	return found("name the container", err)
}

// found makes ErrNotFound of the engine's.
func found(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// List implements Place: by two lists, whatever the number of boxes.
func (p *dockerPlace) List(ctx context.Context, id string) ([]*place.Record, error) {
	e, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	// Each list is right at one moment. A box gets its first note before it is seen complete, so
	// the notes are the later list.
	filters := client.Filters{}.Add("label", serviceLabel+"="+p.service)
	if id != "" {
		filters.Add("name", "^/"+strings.ReplaceAll(p.prefix()+id, ".", `\.`)+"$")
	}
	containers, err := e.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: filters})
	if err != nil {
		return nil, fmt.Errorf("list the boxes: %w", err)
	}
	if len(containers.Items) == 0 {
		return nil, nil
	}
	of := ""
	if id != "" {
		of = containers.Items[0].ID
	}
	notes, err := p.notes(ctx, e, of)
	if err != nil {
		return nil, err
	}
	var records []*place.Record
	for _, c := range containers.Items {
		if r := p.record(c, notes[c.ID]); r != nil {
			records = append(records, r)
		}
	}
	return records, nil
}

// record makes a Record of a container; nil if it is none of the service's boxes, whatever its
// image's labels say.
func (p *dockerPlace) record(c container.Summary, notes []dockerNote) *place.Record {
	if len(c.Names) == 0 || c.Labels["sandshell.box"] == "" {
		return nil
	}
	made, err := strconv.ParseInt(c.Labels[madeLabel], 10, 64)
	if err != nil || c.Labels[specLabel] == "" {
		return nil
	}
	r := &place.Record{Handle: c.ID, Spec: c.Labels[specLabel], Created: time.Unix(0, made)}
	for _, p := range c.Ports {
		if p.PublicPort == 0 || p.Type != "tcp" {
			continue
		}
		if r.Published == nil {
			r.Published = map[int]int{}
		}
		r.Published[int(p.PrivatePort)] = int(p.PublicPort)
	}
	for _, name := range c.Names { // while a container is renamed, it has two
		if id, named := strings.CutPrefix(name, "/"+p.prefix()); named && validID.MatchString(id) {
			r.ID = id
		}
	}
	if r.Note = merge(notes); r.Note != nil {
		r.Created = r.Note.Created
	}
	r.Status, r.Detail, r.Ended = statusOf(string(c.State), c.Status)
	r.Orphan = orphan(c.Labels, r)
	return r
}

// statusOf is the table of Status. text is what docker ps shows: "Exited (137) 2 hours ago".
func statusOf(state, text string) (status Status, detail string, ended bool) {
	switch state {
	case "running":
		return Running, "", false
	case "paused":
		return Paused, "", false
	case "created", "restarting":
		return Starting, "its container is " + state, false
	case "exited":
		return Paused, "its programs have ended (" + text + "); its files are there", true
	case "removing":
		return Missing, "it is being removed", false
	case "dead":
		return Error, "its container is dead: the engine could not remove all of it; delete it",
			false
	}
	return Unknown, fmt.Sprintf("the engine calls its container %q", state), false
}

// orphan reports whether the maker of a box is certainly gone.
func orphan(labels map[string]string, r *place.Record) bool {
	if labels[makerLabel] == thisProcess {
		return false
	}
	pid, err := strconv.Atoi(labels["sandshell.pid"])
	switch {
	case err != nil:
		return false
	case labels["sandshell.host"] != remotebox.HostID():
		return r.ID == "" && time.Since(r.Created) > foreignAge
	}
	return pid == os.Getpid() || remotebox.ProcessGone(pid)
}

// Attach implements Place.
func (p *dockerPlace) Attach(ctx context.Context, handle string) (place.Attached, error) {
	e, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	box, err := sshbox.Engine{Docker: e.Client, Logger: p.log}.Attach(ctx, handle)
	if err != nil {
		return nil, found("attach", err)
	}
	return box, nil
}

// Pause implements Place.
func (p *dockerPlace) Pause(ctx context.Context, handle string) error {
	e, err := p.open(ctx)
	if err != nil {
		return err
	}
	err = docker.Pause(ctx, e.Client, handle)
	return found("pause the container", p.unless(ctx, e, handle, err,
		func(s *container.State) bool { return s.Paused || !s.Running }))
}

// settleLimit is how long the engine may take to notice what has become of a container, as while
// another process removes it.
const settleLimit = 2 * time.Second

// unless returns the engine's refusal, or nil if the container is already as it is to be, or not
// found if it is going.
func (p *dockerPlace) unless(ctx context.Context, e *docker.Engine, handle string, err error,
	already func(*container.State) bool) error {
	if err == nil || errdefs.IsNotFound(err) {
		return err
	}
	for end := time.Now().Add(settleLimit); ; {
		inspected, looked := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
		s := inspected.Container.State
		switch {
		case errdefs.IsNotFound(looked):
			return looked
		case looked != nil || s == nil:
			return err
		case s.Status == container.StateRemoving:
			return fmt.Errorf("it is being removed: %w", errdefs.ErrNotFound)
		case already(s):
			return nil
		case time.Now().After(end) || sleep(ctx, poll) != nil:
			return err
		}
	}
}

// Resume implements Place.
func (p *dockerPlace) Resume(ctx context.Context, handle, checkpoint string) (Kept, error) {
	e, err := p.open(ctx)
	if err != nil {
		return KeptNothing, err
	}
	inspected, err := e.ContainerInspect(ctx, handle, client.ContainerInspectOptions{})
	if err != nil {
		return KeptNothing, found("look at the container", err)
	}
	running := func(s *container.State) bool { return s.Running && !s.Paused }
	switch s := inspected.Container.State; {
	case s == nil:
		return KeptNothing, errors.New("the engine does not say what the container does")
	case running(s):
		return KeptAll, nil
	case s.Paused:
		err = docker.Unpause(ctx, e.Client, handle)
		return KeptAll, found("unpause the container", p.unless(ctx, e, handle, err, running))
	}
	kept, err := restart(ctx, e, handle, checkpoint)
	return kept, found("start the container", p.unless(ctx, e, handle, err, running))
}

// Remove implements Place.
func (p *dockerPlace) Remove(ctx context.Context, handle string) error {
	e, err := p.open(ctx)
	if err != nil {
		return err
	}
	if err := docker.Remove(ctx, e.Client, handle); err != nil {
		return fmt.Errorf("remove the container: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	return p.forget(ctx, e, handle)
}

// removeLimit bounds the removing of notes.
const removeLimit = 30 * time.Second
