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
	"github.com/sandshell/sandshell/internal/sshlogin"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// NoBoxd is a value of DialConfig.Boxd: no program is brought to the machine.
const NoBoxd = "none"

// Boxd returns the path of boxd's program on the machine if boxd carries the box, which then
// outlives a cut of the connection. Else program is "", and why says why there is no boxd.
func (b *SSHBox) Boxd() (program, why string) {
	if b.boxd == nil {
		return "", b.why
	}
	return b.boxd.Program, ""
}

// BoxID returns the id that [Machine.Attach] takes; "" without boxd.
func (b *SSHBox) BoxID() string {
	if b.boxd == nil {
		return ""
	}
	return b.boxd.ID
}

// machine returns what logs in to the machine again and again.
func (c DialConfig) machine() *sshlogin.Machine {
	return &sshlogin.Machine{Login: c.host, Refused: refusal, Dir: c.Boxd, Logger: c.Logger}
}

// refusal returns why a login is refused for good, or "" if it may succeed later. A wrong host key
// will not become the right one. After a refused login, further ones could make the machine shut
// this one out.
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

// place logs in, and starts boxd if the machine can run it. Else boxd is nil, and why says why.
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
		login = nil // the box has closed it
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

// A machineHost is a machine with boxd as a shellbox.Host.
type machineHost struct {
	*client.Host
	boxd *sshlogin.Box

	closing sync.Once
	closed  error // what Close returns
}

// join connects to a running boxd, as its new owner.
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

// Close ends boxd with all that runs in the box, unless Abandon or Detach has been called or the
// box is another program's by now. If the machine does not answer, boxd ends by itself, unless it
// is kept; then Close returns an error.
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
