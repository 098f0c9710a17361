package sshbox

import (
	"context"
	"fmt"

	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/sshhost"
	"github.com/sandshell/sandshell/internal/sshlogin"
)

// A Machine is a machine with boxes of one user on it that boxd carries, whoever made them. Of
// DialConfig it uses what is about the login, and Boxd, which has to be what it was when the boxes
// were made. Its methods may be called from several goroutines; each logs in anew.
type Machine struct {
	DialConfig
}

// List returns the boxes of the user on the machine that boxd carries, and what is left of boxes.
// Only ID, State ("running", or "dead": boxd was killed), Created, Keep and Owner are set.
func (m Machine) List(ctx context.Context) ([]BoxInfo, error) {
	var boxes []BoxInfo
	err := m.visit(ctx, "list boxes", func(m *sshlogin.Machine, login *sshhost.Host) error {
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

// Attach takes over a running box of the user on the machine by its [SSHBox.BoxID]: its sessions
// with their directories, variables and unfinished commands, and its jobs with their logs. All else
// is as with [Engine.Attach].
func (m Machine) Attach(ctx context.Context, id string) (*SSHBox, error) {
	c, err := m.withDefaults()
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*SSHBox, error) {
		return nil, fmt.Errorf("sshbox: attach to box %q on %s@%s: %w", id, c.User, c.Address, err)
	}
	login, err := c.host(ctx)
	if err != nil {
		return nil, err
	}
	boxd, err := c.machine().Find(ctx, login, id)
	if err != nil {
		login.Close()
		return fail(err)
	}
	box, _, err := remotebox.Attach(ctx, "SSHBox", c.options(),
		func(ctx context.Context) (*machineHost, error) { return c.join(ctx, boxd) })
	if err != nil {
		return fail(err)
	}
	return newSSHBox(box, boxd, ""), nil
}

// Reap removes what is left of boxes whose boxd was killed: programs that still run, and files.
// Dial does so too. It returns how many boxes these were.
func (m Machine) Reap(ctx context.Context) (removed int, err error) {
	err = m.visit(ctx, "reap boxes", func(m *sshlogin.Machine, login *sshhost.Host) error {
		removed, err = m.Reap(ctx, login)
		return err
	})
	return removed, err
}

// Prune removes boxd's program from the machine, in all versions. Boxes that run are not disturbed,
// and the next Dial brings the program again.
func (m Machine) Prune(ctx context.Context) error {
	return m.visit(ctx, "remove boxd", func(m *sshlogin.Machine, login *sshhost.Host) error {
		return m.Prune(ctx, login)
	})
}

// visit logs in, calls do, and logs out. what is for errors.
func (m Machine) visit(ctx context.Context, what string,
	do func(*sshlogin.Machine, *sshhost.Host) error) error {
	c, err := m.withDefaults()
	if err != nil {
		return err
	}
	if c.Boxd == NoBoxd {
		return fmt.Errorf("sshbox: %s: DialConfig.Boxd is NoBoxd: name the directory of boxd, or "+
			"leave it empty", what)
	}
	login, err := c.host(ctx)
	if err != nil {
		return err
	}
	defer login.Close()
	if err := do(c.machine(), login); err != nil {
		return fmt.Errorf("sshbox: %s on %s@%s: %w", what, c.User, c.Address, err)
	}
	return nil
}
