package localbox

import (
	"context"
	"fmt"
	"os/user"

	"github.com/sandshell/sandshell/internal/boxspec"
	"github.com/sandshell/sandshell/sandbox"
)

// A Place is this machine as a sandbox.Place. Its boxes isolate nothing. The zero value is usable.
//
// Of a Spec it honours Dir and Env, and User if it is the user of this program. It refuses all that
// takes isolation: an image, limits, NetworkNone, mounts and labels.
type Place struct {
	// Config is what a Spec does not say. Its Dir is the default of Spec.Dir, and Spec.Env is added
	// to its Env.
	Config Config
}

var _ sandbox.Place = Place{}

// String returns "this machine".
func (p Place) String() string { return "this machine" }

const noIsolation = "a LocalBox isolates nothing: leave it out, or use sshbox.Place or " +
	"kubebox.Place"

var refused = map[string]string{
	"Image":  "a LocalBox is this machine, without an image: leave it out, or use sshbox.Place",
	"Memory": noIsolation, "CPUs": noIsolation, "PIDs": noIsolation, "Disk": noIsolation,
	"Mounts": noIsolation,
	"Labels": "nothing lists LocalBoxes: leave it out",
}

// Check returns the error of New for a Spec that this place cannot honour, or nil.
func (p Place) Check(s sandbox.Spec) error {
	_, err := p.config(s)
	if err != nil {
		err = fmt.Errorf("localbox: %w", err)
	}
	return err
}

// New makes a LocalBox for a Spec.
func (p Place) New(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	c, err := p.config(s)
	if err != nil {
		return nil, fmt.Errorf("localbox: %w", err)
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
	if err := c.validate(); err != nil {
		return c, boxspec.InPlace(err)
	}
	if err := s.Check(); err != nil {
		return c, err
	}
	if err := boxspec.Refuse(s, refused); err != nil {
		return c, err
	}
	if err := checkUser(s.User); err != nil {
		return c, err
	}
	switch s.Network {
	case sandbox.NetworkDefault, sandbox.NetworkOpen:
	default:
		return c, boxspec.Unsupported("Network", fmt.Sprintf("%q: a LocalBox has this machine's "+
			"network: leave it out, or use sshbox.Place or kubebox.Place", s.Network))
	}
	if err := (&Config{Dir: s.Dir, Env: s.Env}).validate(); err != nil {
		return c, boxspec.OfSpec(err)
	}
	boxspec.Set(&c.Dir, s.Dir)
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], s.Env...)
	return c, nil
}

// checkUser returns an error unless name is empty or the user of this program.
func checkUser(name string) error {
	if name == "" {
		return nil
	}
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("the user of this program: %w", err)
	}
	if name == u.Username || name == u.Uid {
		return nil
	}
	return boxspec.Unsupported("User", fmt.Sprintf("%q: a LocalBox runs as the user of this "+
		"program, %s: leave it out, or open a session with sandbox.User", name, u.Username))
}
