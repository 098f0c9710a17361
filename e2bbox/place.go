package e2bbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/internal/sshlogin"
	"github.com/sandshell/sandshell/sandbox"
)

// A place is a sandbox with a boxd, and the lease of the sandbox.
type place struct {
	*connection
	sandbox *e2b.Sandbox
	boxd    *sshlogin.Box

	lease    sync.WaitGroup
	endLease func() // ends the lease, and waits until nothing of it goes on

	mu      sync.Mutex
	joined  bool      // a Join has succeeded
	paused  bool      // it was paused at the last look
	gone    bool      // there is no such sandbox any more
	ends    time.Time // when it ends, as far as is known
	refused error     // why its end is not moved any more
}

var _ remotebox.Place = (*place)(nil)

// newPlace returns a sandbox that has just been made or extended, and begins its lease: to bring
// boxd there may take longer than the Timeout.
func newPlace(c *connection, s *e2b.Sandbox) *place {
	p := &place{connection: c, sandbox: s, ends: time.Now().Add(c.config.Timeout)}
	life, cancel := context.WithCancel(context.Background())
	p.lease.Go(func() { p.keep(life) })
	p.endLease = func() {
		cancel()
		p.lease.Wait()
	}
	return p
}

var errPaused = errors.New("the sandbox is paused")

// Join implements client.Place. After a cut it first asks the control plane, because a request of
// the data plane may wake a sandbox that is paused.
func (p *place) Join(ctx context.Context) (client.Streams, error) {
	p.mu.Lock()
	again := p.joined
	p.mu.Unlock()
	if again {
		if err := p.look(ctx); err != nil {
			return nil, err
		}
	}
	streams, err := p.boxd.Join(ctx)
	if err == nil {
		p.mu.Lock()
		p.joined = true
		p.mu.Unlock()
	}
	return streams, err
}

// look asks what has become of the sandbox. It returns nil if the sandbox runs.
func (p *place) look(ctx context.Context) error {
	d, err := p.control.Get(ctx, p.sandbox.SandboxID)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e2b.HasStatus(err, http.StatusNotFound):
		p.gone = true
		return err
	case err != nil:
		return err
	}
	p.paused = d.State == e2b.StatePaused
	if p.paused {
		return errPaused
	}
	p.ends = d.EndAt
	return nil
}

// Diagnose implements client.Place.
func (p *place) Diagnose(ctx context.Context) client.Diagnosis {
	p.mu.Lock()
	known := p.gone || p.paused
	p.mu.Unlock()
	if !known {
		_ = p.look(ctx) // what it finds is below; the Host tries again if it finds nothing
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone && !p.ends.IsZero() && time.Now().After(p.ends.Add(-time.Second)):
		why := "its time ended at " + p.ends.Format(time.RFC3339)
		if p.refused == nil {
			why += ": raise Config.Timeout, or call Extend"
		}
		return client.Diagnosis{Lost: why, Cause: sandbox.LostRemoved, Err: p.refused}
	case p.gone:
		return client.Diagnosis{Lost: "the sandbox was removed", Cause: sandbox.LostRemoved}
	case p.paused:
		return client.Diagnosis{Paused: true}
	}
	return p.boxd.Diagnose(ctx)
}

// removeLimit bounds the removal of a sandbox.
const removeLimit = 30 * time.Second

// Remove implements remotebox.Place.
func (p *place) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	return p.remove(ctx)
}

func (c *connection) kill(ctx context.Context, id string) error {
	err := c.control.Kill(ctx, id)
	if e2b.HasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

func (p *place) remove(ctx context.Context) error {
	if err := p.kill(ctx, p.sandbox.SandboxID); err != nil {
		return fmt.Errorf("the sandbox %s is left running, for %v at most: %w",
			p.sandbox.SandboxID, p.config.Timeout, err)
	}
	return nil
}

// keep moves the end of the sandbox until ctx ends: it is always between two thirds of the Timeout
// and the Timeout from now, or later.
func (p *place) keep(ctx context.Context) {
	tick := time.NewTicker(p.config.Timeout / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.extend(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// extend moves the end of the sandbox to the Timeout from now. It never makes it earlier.
func (p *place) extend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout/3)
	defer cancel()
	err := p.look(ctx)
	if errors.Is(err, errPaused) {
		return // it has no end then, or one that nobody may move
	}
	p.mu.Lock()
	left, was := time.Until(p.ends), p.refused
	p.mu.Unlock()
	if err == nil && left < p.config.Timeout {
		err = p.setEnd(ctx, p.config.Timeout)
	}
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	p.refused = err
	p.mu.Unlock()
	if err != nil && was == nil {
		p.config.Logger.Warn("the end of a sandbox cannot be moved", "sandbox",
			p.sandbox.SandboxID, "end", p.ends, "error", err)
	}
}

// setEnd sets the end of the sandbox.
func (p *place) setEnd(ctx context.Context, d time.Duration) error {
	ends := time.Now().Add(d)
	if err := p.control.SetTimeout(ctx, p.sandbox.SandboxID, int64(d/time.Second)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = ends
	return nil
}
