package sshbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/sshlogin"
)

// machine returns the machine, which logs in again after each cut.
func (c DialConfig) machine() *sshlogin.Machine {
	return &sshlogin.Machine{Login: func(ctx context.Context) (sshlogin.Login, error) {
		login, err := c.logIn(ctx)
		if err != nil {
			return nil, err
		}
		return login, nil
	}, Refused: refusal, Dir: c.Boxd, Logger: c.Logger}
}

// refusal returns why a login must not be tried again, or "" if it may succeed later. A wrong host
// key does not become the right one. After a refused login, more attempts could make the server ban
// this machine.
func refusal(err error) string {
	var key *HostKeyError
	var login *LoginError
	switch {
	case errors.As(err, &key):
		return "another machine answers at its address"
	case errors.As(err, &login):
		return "the machine refuses the login"
	}
	return ""
}

// A machineHost is a machine with boxd as a shellbox.Host.
type machineHost struct {
	*client.Host
	boxd *sshlogin.Box

	closing sync.Once
	closed  error // what Close returns
}

// join connects to a running boxd, as an owner. key is the key of its Start, or nil if this program
// has not started it.
func (c DialConfig) join(ctx context.Context, boxd *sshlogin.Box, way remotebox.Way,
	key *client.Key) (*machineHost, error) {
	h, err := client.Connect(ctx, client.Config{
		Key: key, Name: "SSHBox", Place: boxd, Keep: boxd.Keep, Joins: bool(way),
		Patience: boxd.Linger, Attempt: c.HandshakeTimeout,
		Logger: c.Logger.With("address", c.Address),
	})
	if err != nil {
		boxd.Close()
		return nil, err
	}
	return &machineHost{Host: h, boxd: boxd}, nil
}

// Close ends boxd and all that runs in the box. It leaves the box running if Abandon or Detach has
// been called, or if another program has taken the box over. If the machine does not answer, boxd
// ends by itself after Linger. A box with Keep would not, so then Close returns an error.
func (h *machineHost) Close() error {
	h.closing.Do(func() {
		var err error
		if !h.Joins && !h.Abandoned() && !h.boxd.Ended() {
			err = h.End()
		}
		h.Host.Close()
		if err != nil && h.boxd.Keep && !h.boxd.Ended() {
			h.closed = fmt.Errorf("the box %s is left running: %w", h.boxd.ID, err)
		}
	})
	return h.closed
}
