package e2bbox

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/sandshell/sandshell/internal/boxspec"
	"github.com/sandshell/sandshell/sandbox"
)

// A Place is E2B's API as a sandbox.Place. The zero value is E2B, for the key in E2B_API_KEY.
//
// Spec.Image is the template. Labels are the metadata. NetworkNone is Config.NoInternet. A template
// has its memory, its processors and its disk, so a Place refuses these, and mounts.
type Place struct {
	// Config is what a Spec does not say: the API, the key, the Timeout and so on. Where Config has
	// a field that Spec has too, it is the default for a Spec whose field is zero; Env and Labels
	// of a Spec are added to Env and Metadata of Config.
	Config Config
}

var _ sandbox.Place = Place{}

// String returns "E2B", with the address of the control plane if Config.APIURL is set.
func (p Place) String() string {
	if p.Config.APIURL != "" {
		return "E2B's API at " + p.Config.APIURL
	}
	return "E2B"
}

const ofTemplate = "its template decides that: leave it out, and name a template that has it as " +
	"Image"

var refused = map[string]string{"Memory": ofTemplate, "CPUs": ofTemplate, "PIDs": ofTemplate,
	"Disk": ofTemplate, "Mounts": "E2B's API has none of these mounts: leave it out, and use " +
		"CopyTo"}

// Check returns the error of New for a Spec that this place cannot honour, or nil. It does not ask
// the API.
func (p Place) Check(s sandbox.Spec) error {
	_, err := p.ofSpec(s)
	if err != nil {
		err = fmt.Errorf("e2bbox: %w", err)
	}
	return err
}

// New makes a sandbox for a Spec: see the function New.
func (p Place) New(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	c, err := p.ofSpec(s)
	if err != nil {
		return nil, fmt.Errorf("e2bbox: %w", err)
	}
	box, err := New(ctx, c)
	if err != nil {
		return nil, boxspec.Making(s, err)
	}
	return box, nil
}

// ofSpec returns the Config of a box for a Spec.
func (p Place) ofSpec(s sandbox.Spec) (Config, error) {
	c := p.Config
	if _, err := c.withDefaults(); err != nil {
		return c, boxspec.InPlace(err)
	}
	if err := s.Check(); err != nil {
		return c, err
	}
	if err := boxspec.Refuse(s, refused); err != nil {
		return c, err
	}
	switch s.Network {
	case sandbox.NetworkDefault:
	case sandbox.NetworkNone:
		c.NoInternet = true
	case sandbox.NetworkOpen:
		c.NoInternet = false
	default:
		return c, boxspec.Unsupported("Network", fmt.Sprintf("%q: E2B's API has no networks by "+
			"name: give NetworkNone or NetworkOpen", s.Network))
	}
	alone := Config{APIKey: "x", User: s.User, Dir: s.Dir, Env: s.Env}
	if _, err := alone.withDefaults(); err != nil {
		return c, boxspec.OfSpec(err)
	}
	boxspec.Set(&c.Template, s.Image)
	boxspec.Set(&c.User, s.User)
	boxspec.Set(&c.Dir, s.Dir)
	c.Env = slices.Concat(c.Env, s.Env)
	if len(s.Labels) > 0 {
		c.Metadata = maps.Clone(c.Metadata)
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		maps.Copy(c.Metadata, s.Labels)
	}
	return c, nil
}

// RemoveLabelled removes all sandboxes of the key that have a label, of all programs.
func (p Place) RemoveLabelled(ctx context.Context, name, value string) error {
	c := p.Config
	c.Metadata = map[string]string{name: value}
	list, err := c.List(ctx)
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := c.Kill(ctx, s.ID); err != nil {
			return err
		}
	}
	return nil
}
