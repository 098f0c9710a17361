package kubebox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sandshell/sandshell/internal/boxspec"
	"github.com/sandshell/sandshell/sandbox"
)

// A Place is a namespace of a Kubernetes cluster as a sandbox.Place: its boxes are pods. The zero
// value is the namespace that kubectl would use.
//
// A Place honours all fields of a Spec but PIDs. It takes users as Config.User does, in numbers.
// Spec.Disk is Config.EphemeralStorage. It has no Bind mounts; beside Volume and Tmpfs, a Spec's
// mount can have the type Secret or ConfigMap.
type Place struct {
	// Config is what a Spec does not say: the cluster, the runtime, tolerations and so on. Where
	// Config has a field that Spec has too, it is the default for a Spec whose field is zero; Env,
	// Mounts and Labels of a Spec are added to those of Config. Name must be empty, because each
	// box needs its own.
	Config Config
}

var _ sandbox.Place = Place{}

// String returns "Kubernetes", with the namespace if Config.Namespace is set.
func (p Place) String() string {
	if p.Config.Namespace != "" {
		return "Kubernetes, namespace " + p.Config.Namespace
	}
	return "Kubernetes"
}

// Check returns the error of New for a Spec that this place cannot honour, or nil. It does not ask
// the cluster.
func (p Place) Check(s sandbox.Spec) error {
	_, err := p.config(s)
	if err != nil {
		err = fmt.Errorf("kubebox: %w", err)
	}
	return err
}

// New makes a pod for a Spec: see the function New.
func (p Place) New(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	c, err := p.config(s)
	if err != nil {
		return nil, fmt.Errorf("kubebox: %w", err)
	}
	box, err := New(ctx, c)
	if err != nil {
		return nil, boxspec.Making(s, err)
	}
	return box, nil
}

// config returns the Config of a box for a Spec.
func (p Place) config(s sandbox.Spec) (Config, error) {
	c := p.Config
	if c.Name != "" {
		return c, errors.New("Place.Config.Name: each box needs its own: leave it out")
	}
	if _, err := c.withDefaults(); err != nil {
		return c, boxspec.InPlace(err)
	}
	if err := s.Check(); err != nil {
		return c, err
	}
	if err := boxspec.Refuse(s, map[string]string{"PIDs": "the cluster limits it for all pods of " +
		"a node alike (podPidsLimit of the kubelet): leave it out"}); err != nil {
		return c, err
	}
	alone := Config{Image: s.Image, User: s.User, Dir: s.Dir, Env: s.Env, Labels: s.Labels}
	for i, m := range s.Mounts {
		if m.Type == "" || m.Type == sandbox.Bind {
			return c, boxspec.Unsupported(fmt.Sprintf("Mounts[%d].Type", i), "a pod may run on "+
				"any node, so it has no Bind mounts: use Volume, Tmpfs, Secret or ConfigMap")
		}
		alone.Mounts = append(alone.Mounts, Mount{Type: MountType(m.Type), Source: m.Source,
			Target: m.Target, ReadOnly: m.ReadOnly, Size: m.Size})
	}
	if _, err := alone.withDefaults(); err != nil {
		return c, boxspec.OfSpec(err)
	}
	boxspec.Set(&c.Image, s.Image)
	boxspec.Set(&c.User, s.User)
	boxspec.Set(&c.Dir, s.Dir)
	boxspec.Set(&c.Memory, s.Memory)
	boxspec.Set(&c.CPUs, s.CPUs)
	boxspec.Set(&c.EphemeralStorage, s.Disk)
	switch s.Network {
	case sandbox.NetworkDefault:
	case sandbox.NetworkNone:
		c.Network = NetworkNone
	case sandbox.NetworkOpen, NetworkCluster:
		c.Network = NetworkCluster
	default:
		return c, boxspec.Unsupported("Network", fmt.Sprintf("pods have no network %q: give "+
			"NetworkNone or NetworkOpen", s.Network))
	}
	c.Env, c.Mounts = slices.Concat(c.Env, s.Env), slices.Concat(c.Mounts, alone.Mounts)
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, s.Labels)
	c.Labels = labels
	_, err := c.withDefaults()
	return c, boxspec.Making(s, err)
}

// RemoveLabelled deletes all boxes of the namespace that have a label, of all programs.
func (p Place) RemoveLabelled(ctx context.Context, name, value string) error {
	boxes, err := p.Config.Cluster.List(ctx)
	if err != nil {
		return err
	}
	for _, b := range boxes {
		if b.Labels[name] == value {
			if err := p.Config.Cluster.Remove(ctx, b.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
