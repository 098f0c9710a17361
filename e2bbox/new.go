package e2bbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/sshlogin"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// New makes a sandbox and starts the main session in it. ctx governs New only. If New fails, it
// removes the sandbox.
func New(ctx context.Context, c Config) (*E2BBox, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	box, err := makeBox(ctx, c)
	if err != nil {
		if ctx.Err() != nil {
			err = ctxerr.Explain(ctx, err)
		}
		return nil, fmt.Errorf("e2bbox: make a sandbox of template %q: %w", c.Template, err)
	}
	return box, nil
}

func makeBox(ctx context.Context, c Config) (*E2BBox, error) {
	if err := remotebox.CheckContext(ctx); err != nil {
		return nil, err
	}
	conn := c.open()
	s, err := conn.control.Create(ctx, c.newSandbox())
	if err != nil {
		conn.close()
		return nil, err
	}
	p := newPlace(conn, s)
	h, err := p.start(ctx)
	if err != nil {
		p.endLease()
		err = errors.Join(err, p.Remove(ctx))
		p.close()
		return nil, err
	}
	box, err := shellbox.New(ctx, h, c.options())
	if err != nil { // shellbox.New has closed h, and that has removed the sandbox
		return nil, remotebox.ExplainStart("Config", "the template", c.Dir, c.Shell, err)
	}
	return newE2BBox(box, p), nil
}

// An UnfitError says why boxd cannot run in a sandbox. [New], [Config.Attach] and [Config.Join]
// return a *UnfitError, wrapped. It has this field and this method:
//
//	Why string // one line, which may quote what a program in the sandbox has printed
//
//	Error() string // Why, after "no boxd there: "
type UnfitError = sshlogin.UnfitError

// machine returns the sandbox as what boxd is brought to.
func (p *place) machine(login *e2b.Login) *sshlogin.Machine {
	return &sshlogin.Machine{Logger: p.config.Logger,
		Login:   func(context.Context) (sshlogin.Login, error) { return login, nil },
		Refused: func(error) string { return "" }}
}

// start starts boxd in the sandbox, and connects to it. boxd has no linger: the sandbox's end is
// its own.
func (p *place) start(ctx context.Context) (*remotebox.Host, error) {
	login := &e2b.Login{Client: p.client(p.sandbox)}
	if err := login.Try(ctx); err != nil {
		return nil, err
	}
	key, err := client.NewKey()
	if err != nil {
		return nil, err
	}
	owner := fmt.Sprintf("%s:%d", remotebox.HostID(), os.Getpid())
	p.boxd, err = p.machine(login).Start(ctx, login, p.config.Timeout, true, owner, key)
	if err != nil {
		return nil, err
	}
	return p.connect(ctx, remotebox.Alone, key)
}

// attempt bounds each attempt to connect to boxd.
const attempt = 15 * time.Second

// connect connects to the boxd of the sandbox, as an owner. Close of the Host ends the lease.
func (p *place) connect(ctx context.Context, way remotebox.Way,
	key *client.Key) (*remotebox.Host, error) {
	h, err := client.Connect(ctx, client.Config{Key: key, Name: kind, Place: p, Keep: true,
		Joins: bool(way), Patience: p.config.Timeout, Attempt: attempt,
		Logger: p.config.Logger.With("sandbox", p.sandbox.SandboxID)})
	if err != nil {
		p.boxd.Close()
		return nil, err
	}
	return remotebox.NewHost(h, p, p.endLease, p.close), nil
}
