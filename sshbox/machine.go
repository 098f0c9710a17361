package sshbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/sshhost"
	"github.com/sandshell/sandshell/internal/sshlogin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// NoBoxd as DialConfig.Boxd has no program brought to the machine.
const NoBoxd = "none"

// Boxd says whether boxd carries the box, which makes it outlive a cut of the connection: where its
// program lies on the machine; or "", and why not.
func (b *SSHBox) Boxd() (program, why string) {
	if b.boxd == nil {
		return "", b.why
	}
	return b.boxd.Program, ""
}

// BoxID is what [DialConfig.Attach] knows the box by; "" without boxd.
func (b *SSHBox) BoxID() string {
	if b.boxd == nil {
		return ""
	}
	return b.boxd.ID
}

// machine is how to come to the machine again and again.
func (c DialConfig) machine() *sshlogin.Machine {
	return &sshlogin.Machine{Login: c.host, Refused: refusal, Dir: c.Boxd, Logger: c.Logger}
}

// refusal says why a login is refused for good, "" if it may succeed later. A wrong host key will
// not become the right one. After a refused login, more of them would have the machine shut this
// one out.
func refusal(err error) string {
	var key *HostKeyError
	var login *LoginError
	switch {
	case errors.As(err, &key):
		return "another machine answers at its address"
	case errors.As(err, &login):
		return "the machine does not let this program in any more"
	}
	return ""
}

// place logs in, and starts boxd where that can be. Else boxd is nil, and why says why.
func (c DialConfig) place(
	ctx context.Context) (h shellbox.Host, boxd *sshlogin.Box, why string, err error) {
	login, err := c.host(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	if c.Boxd == NoBoxd {
		return login, nil, "DialConfig.Boxd is NoBoxd", nil
	}
	fail := func(err error) (shellbox.Host, *sshlogin.Box, string, error) {
		return nil, nil, "", fmt.Errorf("sshbox: dial %s@%s: %w", c.User, c.Address, err)
	}
	boxd, err = c.machine().Start(ctx, login, c.Linger, c.Keep,
		fmt.Sprintf("%s:%d", remotebox.HostID(), os.Getpid()))
	if err == nil {
		var host *machineHost
		if host, err = c.join(ctx, boxd); err == nil {
			return host, boxd, "", nil
		}
		login = nil // it was the box's
	}
	if ctx.Err() != nil {
		err = ctxerr.Of(ctx)
	}
	var unfit *sshlogin.UnfitError
	switch {
	case errors.As(err, &unfit):
		why = unfit.Why
	case login == nil && ctx.Err() == nil:
		why = "it does not stay: " + err.Error()
	}
	if why == "" || c.Keep {
		if login != nil {
			if lost := login.Lost(ctx); lost != nil {
				err = lost
			}
			login.Close()
		}
		if why != "" {
			err = fmt.Errorf("DialConfig.Keep needs boxd, for which %w: %s", errors.ErrUnsupported,
				why)
		}
		return fail(err)
	}
	c.Logger.Info("without boxd: what runs on the machine will not outlive the connection", "why",
		why)
	if login == nil {
		if login, err = c.host(ctx); err != nil {
			return nil, nil, "", err
		}
	}
	return login, nil, why, nil
}

// A machineHost is a machine with boxd as a host.
type machineHost struct {
	*client.Host
	boxd *sshlogin.Box

	closing sync.Once
	closed  error // what Close returns
}

// join connects to a boxd that runs, as its new owner.
func (c DialConfig) join(ctx context.Context, boxd *sshlogin.Box) (*machineHost, error) {
	h, err := client.Connect(ctx, client.Config{
		Name: "SSHBox", Place: boxd, Keep: boxd.Keep, Patience: boxd.Linger,
		Attempt: c.HandshakeTimeout, Logger: c.Logger,
	})
	if err != nil {
		boxd.Close()
		return nil, err
	}
	return &machineHost{Host: h, boxd: boxd}, nil
}

// Close ends boxd with all that runs in the box, unless that is left running or is another
// program's by now. Where the machine does not answer, boxd ends by itself, unless it is kept.
func (h *machineHost) Close() error {
	h.closing.Do(func() {
		var err error
		if !h.Abandoned() && !h.boxd.Ended() {
			err = h.End()
		}
		h.Host.Close()
		if err != nil && h.boxd.Keep && !h.boxd.Ended() {
			h.closed = fmt.Errorf("the box %s is left running: %w", h.boxd.ID, err)
		}
	})
	return h.closed
}

// List finds the boxes of the user on the machine that have boxd, and what is left of them. Only
// ID, State ("running", or "dead": boxd was killed), Created, Keep and Owner are set.
func (c DialConfig) List(ctx context.Context) ([]BoxInfo, error) {
	var boxes []BoxInfo
	err := c.visit(ctx, "list boxes", func(m *sshlogin.Machine, login *sshhost.Host) error {
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

// Reap removes what is left of boxes whose boxd was killed: programs that still run, and files.
// Dial does it, too. It returns how many boxes these were.
func (c DialConfig) Reap(ctx context.Context) (removed int, err error) {
	err = c.visit(ctx, "reap boxes", func(m *sshlogin.Machine, login *sshhost.Host) error {
		removed, err = m.Reap(ctx, login)
		return err
	})
	return removed, err
}

// Prune removes boxd from the machine, this version's and others'. Boxes that run are not
// disturbed, and the next Dial brings it again.
func (c DialConfig) Prune(ctx context.Context) error {
	return c.visit(ctx, "remove boxd", func(m *sshlogin.Machine, login *sshhost.Host) error {
		return m.Prune(ctx, login)
	})
}

// visit logs in for a moment.
func (c DialConfig) visit(ctx context.Context, what string,
	do func(*sshlogin.Machine, *sshhost.Host) error) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	if c.Boxd == NoBoxd {
		return fmt.Errorf("sshbox: %s: DialConfig.Boxd is NoBoxd", what)
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

// Attach takes over a running box of the user on the machine by its [SSHBox.BoxID]: its sessions,
// with their directories, variables and unfinished commands, and its jobs with their logs. All else
// is as with [Attach] for containers. Of DialConfig it uses what is about the login, and Boxd,
// which has to be what it was.
func (c DialConfig) Attach(ctx context.Context, id string) (*SSHBox, error) {
	c, err := c.withDefaults()
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
	connecting, cancel := ctxerr.WithLimit(ctx, connectLimit,
		&sandbox.LostError{Box: "SSHBox", Reason: fmt.Sprintf("no answer within %v", connectLimit),
			Cause: sandbox.LostConnection})
	defer cancel()
	h, err := c.join(connecting, boxd)
	if err != nil {
		return fail(err)
	}
	box, err := shellbox.Attach(ctx, h, c.options())
	if err == nil {
		return newSSHBox(box, boxd, ""), nil
	}
	if ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, connectLimit)
		defer cancel()
		if lost := h.Lost(asking); lost != nil {
			err = lost
		}
	}
	h.Abandon() // nobody has asked for the box's end
	h.Close()
	return fail(err)
}
