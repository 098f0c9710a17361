package sshbox

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/sshlogin"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// Dial logs in to a machine and starts the main session. ctx governs Dial only. If the connection
// or the login fails, the error is a *DialError, which names address, user and reason. It wraps a
// *LoginError if the server has refused the login, and a *HostKeyError if the host key is wrong.
func Dial(ctx context.Context, c DialConfig) (*SSHBox, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := remotebox.CheckContext(ctx); err != nil {
		return nil, fmt.Errorf("sshbox: dial %s@%s: %w", c.User, c.Address, err)
	}
	h, boxd, why, err := c.host(ctx)
	if err != nil {
		return nil, err
	}
	box, err := shellbox.New(ctx, h, c.options())
	if err != nil {
		err = remotebox.ExplainStart("DialConfig", "the machine", c.Dir, c.Shell, err)
		return nil, fmt.Errorf("sshbox: dial %s@%s: %w", c.User, c.Address, err)
	}
	return newSSHBox(box, boxd, why), nil
}

// A DialError says why a machine could not be logged in to.
type DialError struct {
	User, Address string // the address with its port
	Reason        string
	Err           error // the underlying error
}

// Error returns the user, the address and the reason.
func (e *DialError) Error() string {
	return "sshbox: dial " + e.User + "@" + e.Address + ": " + e.Reason
}

// Unwrap returns e.Err.
func (e *DialError) Unwrap() error { return e.Err }

// host logs in, and starts boxd if the machine can run it. If not, boxd is nil, and why says why.
func (c DialConfig) host(
	ctx context.Context) (h shellbox.Host, boxd *sshlogin.Box, why string, err error) {
	login, err := c.logIn(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	if c.Boxd == NoBoxd {
		return login, nil, "DialConfig.Boxd is NoBoxd", nil
	}
	fail := func(err error) (shellbox.Host, *sshlogin.Box, string, error) {
		return nil, nil, "", fmt.Errorf("sshbox: dial %s@%s: %w", c.User, c.Address, err)
	}
	key, err := client.NewKey()
	if err == nil {
		boxd, err = c.machine().Start(ctx, login, c.Linger, c.Keep,
			fmt.Sprintf("%s:%d", remotebox.HostID(), os.Getpid()), key)
	}
	if err == nil {
		var host *machineHost
		if host, err = c.join(ctx, boxd, remotebox.Alone, key); err == nil {
			return host, boxd, "", nil
		}
		login = nil // join has closed it
	}
	if ctx.Err() != nil {
		err = ctxerr.Of(ctx)
	}
	var unfit *sshlogin.UnfitError
	switch {
	case errors.As(err, &unfit):
		why = unfit.Why
	case login == nil && ctx.Err() == nil:
		why = "it was started, and cannot be reached: " + err.Error()
	}
	if why == "" || c.Keep {
		if login != nil {
			if lost := login.Lost(ctx); lost != nil {
				err = lost
			}
			login.Close()
		}
		if why != "" {
			err = fmt.Errorf("DialConfig.Keep: it needs boxd: %w: %s", errors.ErrUnsupported, why)
		}
		return fail(err)
	}
	c.Logger.Info("without boxd: what runs on the machine will not outlive the connection", "why",
		why)
	if login == nil {
		if login, err = c.logIn(ctx); err != nil {
			return nil, nil, "", err
		}
	}
	return login, nil, why, nil
}
