package sshbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/internal/sshhost"
	"golang.org/x/crypto/ssh"
)

// logIn logs in and returns the machine as a host without boxd.
func (c DialConfig) logIn(ctx context.Context) (*sshhost.Host, error) {
	first, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	return sshhost.New(first, sshhost.Config{
		Dial: c.untilRefused(), MaxSessions: c.MaxSessions, Env: slices.Clone(c.Env),
	}), nil
}

// untilRefused returns a function that makes connections. Once a login has been refused, the
// function returns that error and does not log in again.
func (c DialConfig) untilRefused() func(context.Context) (*sshconn.Conn, error) {
	var refused atomic.Pointer[error]
	return func(ctx context.Context) (*sshconn.Conn, error) {
		if err := refused.Load(); err != nil {
			return nil, *err
		}
		conn, err := c.connect(ctx)
		var login *LoginError
		if errors.As(err, &login) {
			refused.Store(&err)
		}
		return conn, err
	}
}

// connect makes one connection and keeps it alive. While too many connections have not logged in
// yet, OpenSSH hangs up on new ones at random (MaxStartups), so connect tries a few times.
func (c DialConfig) connect(ctx context.Context) (*sshconn.Conn, error) {
	ctx, cancel := ctxerr.WithLimit(ctx, c.HandshakeTimeout, sshconn.ErrNoHandshake)
	defer cancel()
	pause := 50 * time.Millisecond
	var hungUp error // the last attempt's
	for attempt := 1; ; attempt++ {
		conn, err := c.connectOnce(ctx)
		if err == nil {
			if c.KeepAlive > 0 {
				conn.Keep(c.KeepAlive, c.KeepAliveMax)
			}
			return conn, nil
		}
		var unwelcome *sshconn.UnwelcomeError
		switch {
		case errors.As(err, &unwelcome) && attempt < 6:
			hungUp = err
		case hungUp != nil && timedOut(ctx): // err would only say that time is up
			return nil, hungUp
		default:
			return nil, err
		}
		c.Logger.Debug("the server hung up on a new connection; trying again", "address", c.Address,
			"attempt", attempt, "error", err)
		select {
		case <-time.After(pause + rand.N(pause)):
			pause *= 2
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (c DialConfig) connectOnce(ctx context.Context) (*sshconn.Conn, error) {
	fail := func(reason string, err error) error {
		return &DialError{User: c.User, Address: c.Address, Reason: reason, Err: err}
	}
	keys, err := c.hostKeys(ctx)
	if err != nil {
		return nil, fail(err.Error(), err)
	}
	login, err := c.login(ctx)
	if err != nil {
		return nil, fail(err.Error(), err)
	}
	defer login.close()
	dial := func() (net.Conn, error) { return c.DialContext(ctx, "tcp", c.Address) }
	raw, err := callback(ctx, "DialConfig.DialContext", dial, func(late net.Conn) { late.Close() })
	if err != nil {
		return nil, fail(dialReason(ctx, err, c.HandshakeTimeout), ctxerr.Explain(ctx, err))
	}
	login.line = &line{Conn: raw}
	config := &ssh.ClientConfig{
		User: c.User, AuthCallback: login.next,
		HostKeyCallback: keys.check, HostKeyAlgorithms: keys.algorithms(c.Address,
			raw.RemoteAddr()),
	}
	config.Ciphers = sshconn.PreferredCiphers()
	conn, err := sshconn.Handshake(ctx, login.line, c.Address, config, nil)
	if err == nil {
		return conn, nil
	}
	if wrong := keys.err.Load(); wrong != nil {
		return nil, fail(wrong.Error(), wrong)
	}
	var unwelcome *sshconn.UnwelcomeError
	switch {
	case ctx.Err() != nil:
		return nil, fail(dialReason(ctx, err, c.HandshakeTimeout), ctxerr.Explain(ctx, err))
	case errors.As(err, &unwelcome):
		return nil, fail(err.Error()+" (is it an SSH server, and does it let this machine in?)",
			err)
	}
	if refused := login.failed(err); refused != nil {
		return nil, fail(refused.Error(), refused)
	}
	return nil, fail(strings.TrimPrefix(err.Error(), "ssh: "), err)
}

// timedOut reports whether HandshakeTimeout is over. The dialer's timer may fire a moment before
// the context's timer does; timedOut then waits for the context.
func timedOut(ctx context.Context) bool {
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		<-ctx.Done()
	}
	return errors.Is(ctxerr.Of(ctx), sshconn.ErrNoHandshake)
}

// dialReason says why no connection was made, without the address, which DialError has.
func dialReason(ctx context.Context, err error, limit time.Duration) string {
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case timedOut(ctx):
		return fmt.Sprintf("no answer, or no SSH handshake, within %v (is it up, reachable, and "+
			"an SSH server?)", limit)
	case ctx.Err() != nil:
		return ctxerr.Of(ctx).Error()
	case errors.As(err, &lookup):
		return "no such host: " + lookup.Error()
	case errors.As(err, &op) && op.Err != nil:
		return op.Err.Error() + " (is an SSH server running there?)"
	}
	return err.Error()
}
