package sshbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/sshlogin"
)

// A Machine is a machine with the boxes that one user has there and that boxd carries, of all
// programs. Boxd must have the value with which the boxes were made. Attach uses all of DialConfig;
// the other methods use Boxd, Logger and the fields for the login. Each call logs in anew. Methods
// may be called from several goroutines.
type Machine struct {
	DialConfig
}

// List returns the user's boxes on the machine that boxd carries, and what is left of boxes. Only
// ID, State, Created, Keep and Owner are set. State is "running", or "dead" if boxd was killed.
func (m Machine) List(ctx context.Context) ([]BoxInfo, error) {
	var boxes []BoxInfo
	err := m.visit(ctx, "list boxes", func(m *sshlogin.Machine, login sshlogin.Login) error {
		list, err := m.List(ctx, login)
		for _, b := range list {
			info := BoxInfo{ID: b.ID, State: "running", Created: b.Created, Keep: b.Keep,
				Owner: Owner{Host: b.Host, PID: b.Process}}
			if b.Ended {
				info.State = "dead"
			}
			boxes = append(boxes, info)
		}
		return err
	})
	return boxes, err
}

// Attach takes over a running box of the user on the machine by its [SSHBox.BoxID], with its
// sessions and jobs, as [Engine.Attach] does.
func (m Machine) Attach(ctx context.Context, id string) (*SSHBox, error) {
	return m.attach(ctx, id, remotebox.Alone)
}

// Join attaches to a running box of the user on the machine beside the programs that have it, as
// [Engine.Join] does.
func (m Machine) Join(ctx context.Context, id string) (*SSHBox, error) {
	return m.attach(ctx, id, remotebox.Beside)
}

func (m Machine) attach(ctx context.Context, id string, way remotebox.Way) (*SSHBox, error) {
	c, err := m.withDefaults()
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*SSHBox, error) {
		return nil, fmt.Errorf("sshbox: attach to box %q on %s@%s: %w", id, c.User, c.Address, err)
	}
	if err := remotebox.CheckContext(ctx); err != nil {
		return fail(err)
	}
	if id == "" {
		return fail(errors.New("the id is empty: List has them"))
	}
	login, err := c.logIn(ctx)
	if err != nil {
		return nil, err
	}
	boxd, err := c.machine().Find(ctx, login, id)
	if err != nil {
		login.Close()
		return fail(err)
	}
	box, _, err := remotebox.Attach(ctx, "SSHBox", c.options(), way,
		func(ctx context.Context) (*machineHost, error) { return c.join(ctx, boxd, way, nil) })
	if err != nil {
		return fail(err)
	}
	return newSSHBox(box, boxd, ""), nil
}

// Reap removes what is left of boxes whose boxd was killed: programs that still run, and files. It
// returns the number of such boxes. Dial does the same.
func (m Machine) Reap(ctx context.Context) (removed int, err error) {
	err = m.visit(ctx, "reap boxes", func(m *sshlogin.Machine, login sshlogin.Login) error {
		removed, err = m.Reap(ctx, login)
		return err
	})
	return removed, err
}

// Prune removes all versions of boxd's program from the machine. Running boxes go on, and the next
// Dial brings the program again.
func (m Machine) Prune(ctx context.Context) error {
	return m.visit(ctx, "remove boxd", func(m *sshlogin.Machine, login sshlogin.Login) error {
		return m.Prune(ctx, login)
	})
}

// visit logs in, calls do, and logs out. what says in errors what was being done.
func (m Machine) visit(ctx context.Context, what string,
	do func(*sshlogin.Machine, sshlogin.Login) error) error {
	c, err := m.withDefaults()
	if err != nil {
		return err
	}
	if c.Boxd == NoBoxd {
		return fmt.Errorf("sshbox: %s: DialConfig.Boxd: it is NoBoxd: give boxd's directory, or "+
			"leave it out", what)
	}
	login, err := c.logIn(ctx)
	if err != nil {
		return err
	}
	defer login.Close()
	if err := do(c.machine(), login); err != nil {
		return fmt.Errorf("sshbox: %s on %s@%s: %w", what, c.User, c.Address, err)
	}
	return nil
}
