package sshbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/sandshell/sandshell/internal/boxspec"
	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/sandbox"
)

// A Place is a Docker engine as a sandbox.Place: its boxes are containers. The zero value is the
// engine that the docker command would use. A Place honours all fields of a Spec but Disk.
type Place struct {
	// Config is what a Spec does not say: the engine, capabilities, the runtime, when to pull, and
	// so on. Where Config has a field that Spec has too, it is the default for a Spec whose field
	// is zero; Env, Mounts and Labels of a Spec are added to those of Config. With
	// sandbox.NetworkOpen, the network is Config's too, unless that is "none". Name must be empty,
	// because each box needs its own.
	Config Config
}

var _ sandbox.Place = Place{}

// String returns "Docker", with the engine's address if Config.Docker is set.
func (p Place) String() string {
	if p.Config.Docker != nil {
		return "Docker at " + p.Config.Docker.DaemonHost()
	}
	return "Docker"
}

// Check returns the error of New for a Spec that this place cannot honour, or nil. It asks neither
// the engine nor the network.
func (p Place) Check(s sandbox.Spec) error {
	_, err := p.config(s)
	if err != nil {
		err = fmt.Errorf("sshbox: %w", err)
	}
	return err
}

// CheckLimits returns the error of New for a Memory, CPUs or PIDs of s that the engine cannot hold,
// or nil. The error wraps a *sandbox.SpecError. CheckLimits asks the engine, unlike Check.
func (p Place) CheckLimits(ctx context.Context, s sandbox.Spec) error {
	c := Config{Memory: s.Memory, CPUs: s.CPUs, PIDs: cmp.Or(s.PIDs, -1)}
	e, err := p.engine().open(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	limits := container.HostConfig{Resources: c.limits()}
	return making(s, e.CheckLimits(ctx, docker.Spec{Host: limits}))
}

// New makes a container for a Spec: see the function New.
func (p Place) New(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	c, err := p.config(s)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	box, err := New(ctx, c)
	if err != nil {
		return nil, making(s, err)
	}
	return box, nil
}

// Snapshot keeps a box of this place, for NewFrom: see [DockerSSHBox.Snapshot]. What a copy would
// lack is a *sandbox.IncompleteError. The caller removes the snapshot with RemoveSnapshot. If this
// program is killed, New or [Engine.Reap] of another one removes it.
func (p Place) Snapshot(ctx context.Context, box sandbox.Sandbox) (id string, err error) {
	b, ok := sandbox.As[*DockerSSHBox](box)
	if !ok {
		return "", fmt.Errorf("sshbox: snapshot: %w: %s is no container", errors.ErrUnsupported,
			box)
	}
	s, err := b.snapshot(ctx, true, nil)
	if err != nil {
		return "", fmt.Errorf("sshbox: snapshot: %w", err)
	}
	return s.ID, nil
}

// NewFrom makes a container of a snapshot, and otherwise for a Spec. Spec.Image does not count.
func (p Place) NewFrom(ctx context.Context, snapshot string, s sandbox.Spec) (sandbox.Sandbox,
	error) {
	c, err := p.config(s)
	if err != nil {
		return nil, fmt.Errorf("sshbox: %w", err)
	}
	c.Image, c.Snapshot = "", snapshot
	box, err := New(ctx, c)
	if err != nil {
		return nil, making(s, err)
	}
	return box, nil
}

// RemoveSnapshot removes a snapshot: see [Snapshot.Remove].
func (p Place) RemoveSnapshot(ctx context.Context, id string) error {
	return (&Snapshot{ID: id, engine: p.engine()}).Remove(ctx)
}

// config returns the Config of a box for a Spec.
func (p Place) config(s sandbox.Spec) (Config, error) {
	c := p.Config
	if c.Name != "" {
		return c, errors.New("Place.Config.Name: each box needs its own: leave it out")
	}
	if err := c.Check(); err != nil {
		return c, boxspec.InPlace(err)
	}
	if err := s.Check(); err != nil {
		return c, err
	}
	if err := boxspec.Refuse(s, map[string]string{"Disk": "the storage drivers of most engines " +
		"cannot bound what a container writes: leave it out, or use kubebox.Place"}); err != nil {
		return c, err
	}
	alone := Config{Image: s.Image, User: s.User, Dir: s.Dir, Env: s.Env, Mounts: s.Mounts,
		Memory: s.Memory}
	if err := alone.Check(); err != nil {
		return c, boxspec.OfSpec(err)
	}
	boxspec.Set(&c.Image, s.Image)
	boxspec.Set(&c.User, s.User)
	boxspec.Set(&c.Dir, s.Dir)
	boxspec.Set(&c.Memory, s.Memory)
	boxspec.Set(&c.CPUs, s.CPUs)
	boxspec.Set(&c.PIDs, s.PIDs)
	switch {
	case s.Network != sandbox.NetworkOpen:
		boxspec.Set(&c.Network, string(s.Network))
	case c.Network == "none":
		c.Network = ""
	}
	c.Env, c.Mounts = slices.Concat(c.Env, s.Env), slices.Concat(c.Mounts, s.Mounts)
	c.Labels = mergeLabels(c.Labels, s.Labels)
	return c, boxspec.Making(s, c.Check())
}

// making returns an error of making a box for a Spec, with the Spec's names of fields.
func making(s sandbox.Spec, err error) error {
	ofSpec := map[string]bool{"Memory": s.Memory > 0, "CPUs": s.CPUs > 0, "PIDs": s.PIDs > 0}
	var limit *docker.LimitError
	if errors.As(err, &limit) && ofSpec[limit.Field] {
		return fmt.Errorf("sshbox: %w", boxspec.Unsupported(limit.Field, limit.Reason()))
	}
	return boxspec.Making(s, err)
}

// mergeLabels returns the labels of both. Those of more count where a name is in both.
func mergeLabels(labels, more map[string]string) map[string]string {
	merged := maps.Clone(labels)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, more)
	return merged
}

// RemoveLabelled removes all boxes on the engine that have a label, of all programs.
func (p Place) RemoveLabelled(ctx context.Context, name, value string) error {
	engine := p.engine()
	boxes, err := engine.List(ctx)
	if err != nil {
		return err
	}
	for _, b := range boxes {
		if b.Labels[name] == value {
			if err := engine.Remove(ctx, b.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// ImageID returns the id of an image on the engine: see Engine.ImageID.
func (p Place) ImageID(ctx context.Context, name string) (string, error) {
	return p.engine().ImageID(ctx, name)
}

// BuildImage builds an image for Spec.Image from a directory of this machine: see
// Engine.BuildImage.
func (p Place) BuildImage(ctx context.Context, dir, dockerfile string, log io.Writer) (name string,
	err error) {
	return p.engine().BuildImage(ctx, Build{Dir: dir, Dockerfile: dockerfile, Log: log})
}

func (p Place) engine() Engine { return Engine{Docker: p.Config.Docker, Logger: p.Config.Logger} }
