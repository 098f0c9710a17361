package e2bbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/remotebox"
)

// unsupported returns the error of a call of the control plane. It is errors.ErrUnsupported if the
// server does not have the call.
func unsupported(err error) error {
	if e2b.HasStatus(err, http.StatusNotImplemented) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// Attach takes over a sandbox by its id, and resumes it if it is paused. If a box runs in it, the
// E2BBox has that box's sessions with their directories, variables and unfinished commands, and its
// jobs: see Session, Sessions, Job and Jobs. Attach kills the box's Runs, and the previous owner
// loses the box: its calls return sandbox.ErrLost. In a sandbox that another program has made, such
// as one of E2B's SDKs, Attach starts a box.
//
// This program owns the sandbox from then on: Close removes it. Template, Env, Metadata and
// NoInternet of the Config do not matter; User must be that of New.
func (c Config) Attach(ctx context.Context, id string) (*E2BBox, error) {
	return c.attach(ctx, id, remotebox.Alone)
}

// Join attaches to a running box beside the programs that have it already, which keep it. Sessions
// and jobs are shared by their ids. One program at a time uses a session: while its call is under
// way, calls of others return sandbox.ErrBusy. Close of the returned box leaves everything running.
func (c Config) Join(ctx context.Context, id string) (*E2BBox, error) {
	return c.attach(ctx, id, remotebox.Beside)
}

func (c Config) attach(ctx context.Context, id string, way remotebox.Way) (*E2BBox, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	err = remotebox.CheckContext(ctx)
	if err == nil && id == "" {
		err = errors.New("the id is empty: List has them")
	}
	var box *E2BBox
	if err == nil {
		box, err = c.attachTo(ctx, id, way)
	}
	if err != nil {
		return nil, fmt.Errorf("e2bbox: attach to sandbox %q: %w", id, err)
	}
	return box, nil
}

func (c Config) attachTo(ctx context.Context, id string, way remotebox.Way) (*E2BBox, error) {
	conn := c.open()
	s, err := conn.control.Connect(ctx, id, int64(c.Timeout/time.Second))
	if err != nil {
		conn.close()
		return nil, err
	}
	p := newPlace(conn, s)
	box, err := p.attach(ctx, way)
	if err != nil {
		p.endLease()
		p.close()
	}
	return box, err
}

// attach attaches to the box in the sandbox. If there is none, and way is not Beside, it starts
// one. If that fails, the sandbox stays.
func (p *place) attach(ctx context.Context, way remotebox.Way) (*E2BBox, error) {
	found, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	connect := func(ctx context.Context) (*remotebox.Host, error) {
		return p.connect(ctx, way, nil)
	}
	if !found {
		if way == remotebox.Beside {
			return nil, errors.New("no box runs in it: Attach starts one")
		}
		h, err := p.start(ctx)
		if err != nil {
			return nil, err
		}
		connect = func(context.Context) (*remotebox.Host, error) { return h, nil }
	}
	box, _, err := remotebox.Attach(ctx, kind, p.config.options(), way, connect)
	if err != nil {
		return nil, err
	}
	return newE2BBox(box, p), nil
}

// find sets p.boxd to the boxd that runs in the sandbox, the newest if there are several. It
// reports whether there is one.
func (p *place) find(ctx context.Context) (bool, error) {
	login := &e2b.Login{Client: p.client(p.sandbox)}
	if err := login.Try(ctx); err != nil {
		return false, err
	}
	m := p.machine(login)
	boxes, err := m.List(ctx, login)
	if err != nil {
		return false, err
	}
	newest := -1
	for i, b := range boxes {
		if !b.Ended && (newest < 0 || b.Created.After(boxes[newest].Created)) {
			newest = i
		}
	}
	if newest < 0 {
		return false, nil
	}
	p.boxd, err = m.Find(ctx, login, boxes[newest].ID)
	return err == nil, err
}

// A SandboxInfo describes a sandbox.
type SandboxInfo struct {
	ID       string
	Template string
	Created  time.Time
	Ends     time.Time // when it ends, if nobody moves that
	Paused   bool
	Metadata map[string]string
}

// List returns the sandboxes of the key that have all of the Config's Metadata, those of other
// programs too. Beside Metadata, it uses the fields for the API.
func (c Config) List(ctx context.Context) ([]SandboxInfo, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	conn := c.open()
	defer conn.close()
	list, err := conn.control.List(ctx, c.Metadata)
	if err != nil {
		return nil, fmt.Errorf("e2bbox: %w", err)
	}
	infos := make([]SandboxInfo, len(list))
	for i, l := range list {
		infos[i] = SandboxInfo{ID: l.SandboxID, Template: l.TemplateID, Created: l.StartedAt,
			Ends: l.EndAt, Paused: l.State == e2b.StatePaused, Metadata: l.Metadata}
	}
	return infos, nil
}

// Kill removes a sandbox by its id. Removing one that is gone does nothing.
func (c Config) Kill(ctx context.Context, id string) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	conn := c.open()
	defer conn.close()
	if err := conn.kill(ctx, id); err != nil {
		return fmt.Errorf("e2bbox: %w", err)
	}
	return nil
}
