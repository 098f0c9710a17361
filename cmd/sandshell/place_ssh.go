package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// machine is a machine with an sshd.
type machine struct{ sshbox.Machine }

// parseMachine parses "[user@]host[:port]".
func parseMachine(text string) (where, error) {
	u, err := url.Parse("ssh://" + text)
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, usage("the place ssh://%s is not ssh://[user@]host[:port]", text)
	}
	if _, ok := u.User.Password(); ok {
		return nil, usage("the place ssh://%s has a password: leave it out, sandshell logs in "+
			"with keys", u.Host)
	}
	c := sshbox.DialConfig{Address: u.Host, User: u.User.Username()}
	return machine{sshbox.Machine{DialConfig: c}}, nil
}

func (m machine) place(o making) (sandbox.Place, error) {
	if o.pull != "" {
		return nil, usage("-pull is for images, and a machine has none: leave it out")
	}
	machines, err := sshbox.NewMachines(sshbox.MachinesConfig{
		Machines: []sshbox.DialConfig{m.DialConfig}, Boxes: max(o.boxes, 1)})
	if err != nil || !o.keep {
		return machines, err
	}
	return keptMachine{machines, m.DialConfig}, nil
}

// A keptMachine makes boxes that outlive sandshell.
type keptMachine struct {
	*sshbox.Machines // checks
	config           sshbox.DialConfig
}

func (m keptMachine) New(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	if err := m.Check(s); err != nil {
		return nil, err
	}
	c := m.config
	c.Keep = true
	c.User = cmp.Or(s.User, c.User)
	c.Dir = cmp.Or(s.Dir, c.Dir)
	c.Env = slices.Concat(c.Env, s.Env)
	return sshbox.Dial(ctx, c)
}

func (machine) name(box sandbox.Sandbox) string {
	if b, ok := sandbox.As[*sshbox.SSHBox](box); ok {
		return b.BoxID()
	}
	return ""
}

func (m machine) list(ctx context.Context) ([]boxInfo, error) { return infos(m.List(ctx)) }

func (m machine) join(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return m.Join(ctx, id)
}

func (m machine) remove(ctx context.Context, id string) error {
	box, err := m.Attach(ctx, id) // its Close ends the box
	if errors.Is(err, sandbox.ErrLost) {
		_, err = m.Reap(ctx)
		return err
	}
	if err != nil {
		return err
	}
	return box.Close()
}

func (m machine) reap(ctx context.Context) (int, error) { return m.Reap(ctx) }

func (m machine) prune(ctx context.Context) (pruned, error) { return pruned{}, m.Prune(ctx) }

func (machine) hasImages() bool { return false }
