package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// A wayOut is what a connection has to serve the way out of its box.
type wayOut struct {
	exit atomic.Pointer[egress.Exit] // the last one; nil before the first

	// joined is when this process has connected only to serve; nil if somebody uses the box.
	joined atomic.Pointer[time.Time]
	hosts  atomic.Pointer[[]string] // of the gate; nil if they narrow nothing
	ended  context.Context          // ends when the connection is released
	end    context.CancelFunc

	mu    chan struct{} // holds a token while nobody uses what follows
	gate  *egress.Gate  // nil before the first use
	rules egress.Config // its Allow and Deny, before hosts narrow them
	ahead *egress.Exit  // what prepare has done; nil if it was not called
	asked *gateCall     // a call of Config.Egress that has not returned
}

// A gateCall is a call of Config.Egress.
type gateCall struct {
	config   egress.Config
	returned <-chan error
}

func newWayOut() *wayOut {
	w := &wayOut{mu: make(chan struct{}, 1)}
	w.mu <- struct{}{}
	w.ended, w.end = context.WithCancel(context.Background())
	return w
}

// serving returns the Exit by which this process serves the box; nil if it does not.
func (w *wayOut) serving() *egress.Exit {
	exit := w.exit.Load()
	if exit == nil {
		return nil
	}
	select {
	case <-exit.Done():
		return nil
	default:
		return exit
	}
}

// leave ends the serving. What is in the box stays for the process that serves it next.
func (w *wayOut) leave() {
	w.end()
	<-w.mu
	if exit := w.exit.Load(); exit != nil {
		_ = exit.Detach()
	}
	if w.gate != nil {
		_ = w.gate.Close()
	}
	w.mu <- struct{}{}
}

// exitLimit bounds the time in which a box must let this process serve it.
const exitLimit = 20 * time.Second

// serveExit makes this process serve the way out of a running box, if it has one and no other
// process serves it. What it does in the box does not count as use.
func (s *Service) serveExit(ctx context.Context, c *connection, r *place.Record) error {
	if !hasExit(r) || c.serving() != nil {
		return nil
	}
	ctx, cancel := ctxerr.WithLimit(hostapi.Unnoticed(ctx), exitLimit,
		fmt.Errorf("the box has not answered for %v", exitLimit))
	defer cancel()
	defer context.AfterFunc(c.ended, cancel)()
	select {
	case <-c.mu:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	defer func() { c.mu <- struct{}{} }()
	if c.ended.Err() != nil {
		return sandbox.ErrClosed
	}
	if c.serving() != nil {
		return nil
	}
	if c.gate == nil {
		gate, err := s.newGate(ctx, c, r)
		if err != nil {
			return err
		}
		c.gate = gate
	}
	if err := c.narrow(r.Note.Hosts); err != nil {
		return err
	}
	exit, err := c.gate.Attach(ctx, c.Attached, egress.Authority(s.exitKey(r.Handle)),
		egress.Prepared(c.ahead))
	if errors.Is(err, egress.ErrServed) {
		return nil
	}
	if err == nil {
		c.ahead = nil // from now on the box may change
		c.exit.Store(exit)
	}
	return err
}

// prepare puts into a box of a pool what serveExit needs, which takes a while.
func (s *Service) prepare(ctx context.Context, c *connection) error {
	ctx, cancel := context.WithTimeout(hostapi.Unnoticed(ctx), exitLimit)
	defer cancel()
	gate, err := egress.New(egress.Config{})
	if err != nil {
		return err
	}
	defer gate.Close()
	c.ahead, err = gate.Attach(ctx, c.Attached, egress.Authority(s.exitKey(c.handle)))
	if err != nil {
		return err
	}
	return c.ahead.Detach()
}

// exitKey returns the key of a box's certificate authority. No other box ever has the handle.
func (s *Service) exitKey(handle string) []byte { return s.sum("egress authority", handle) }

// newGate returns the gate of a box. The caller has c.mu.
func (s *Service) newGate(ctx context.Context, c *connection, r *place.Record) (*egress.Gate,
	error) {
	if c.asked == nil { // else the call goes on
		c.asked = s.askForGate(r)
	}
	asked := c.asked
	select {
	case err := <-asked.returned:
		c.asked = nil
		if err != nil {
			return nil, fmt.Errorf("Config.Egress: %w", err)
		}
	case <-ctx.Done():
		return nil, fmt.Errorf("Config.Egress has not returned: %w", ctxerr.Of(ctx))
	}
	asked.config.Ask = c.askOf(asked.config.Ask)
	gate, err := egress.New(asked.config)
	if err != nil {
		return nil, fmt.Errorf("Config.Egress: %w", err)
	}
	c.rules = egress.Config{Allow: asked.config.Allow, Deny: asked.config.Deny}
	return gate, nil
}

// askForGate calls Config.Egress about a box.
func (s *Service) askForGate(r *place.Record) *gateCall {
	asked := &gateCall{config: egress.Config{Allow: egress.Rules(r.Note.Egress...)}}
	box := &Info{ID: r.ID, Owner: r.Note.Owner, Spec: r.Spec, Status: Running,
		Created: r.Created, Dir: r.Note.Dir, Metadata: maps.Clone(r.Note.Metadata),
		Egress: rulesOf(r), Hosts: slices.Clone(r.Note.Hosts)}
	asked.returned = guard.Go("Config.Egress", func() error {
		if s.egress == nil {
			return nil
		}
		return s.egress(box, &asked.config)
	})
	return asked
}

// keepServing is serveExit for a box that is there: what has failed is logged, and tried again in
// the next round.
func (s *Service) keepServing(ctx context.Context, c *connection, r *place.Record) {
	if c.serving() != nil {
		return
	}
	err := s.serveExit(ctx, c, r)
	if ctx.Err() == nil && c.ended.Err() == nil {
		s.logExit(r, err)
	}
}

// logExit logs why this process does not serve the way out of a box, once for each reason.
func (s *Service) logExit(r *place.Record, err error) {
	s.mu.Lock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	known := s.exitFailures[r.Handle] == text
	if err == nil {
		delete(s.exitFailures, r.Handle)
	} else {
		s.exitFailures[r.Handle] = text
	}
	s.mu.Unlock()
	if err != nil && !known {
		s.log.Warn("the way out of a box is not served", "box", r.ID, "error", err)
	}
}

// joining is how many boxes this process begins to serve at once.
const joining = 8

// serveExits makes this process serve the ways out that no process serves: that of one that was
// killed, for example. It does not wait. While its last call is under way, it does nothing.
func (s *Service) serveExits(running []*place.Record) {
	need := slices.DeleteFunc(slices.Clone(running), func(r *place.Record) bool {
		c := s.connectionTo(r)
		return !hasExit(r) || c != nil && c.serving() != nil
	})
	if len(need) == 0 || !s.servesExits.CompareAndSwap(false, true) {
		return
	}
	s.tasks.Go(func() {
		defer s.servesExits.Store(false)
		free := make(chan struct{}, joining)
		var all sync.WaitGroup
		for _, r := range need {
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				err := guard.Call("the Place", func() error { return s.joinToServe(s.ctx, r) })
				if err != nil && !errors.Is(err, ErrNotFound) && s.ctx.Err() == nil {
					s.logExit(r, err)
				}
			})
		}
		all.Wait()
	})
}

// joinToServe connects to a box if this process is not connected, and serves its way out unless
// another process does. It stays connected, so that the next look costs one round trip.
func (s *Service) joinToServe(ctx context.Context, r *place.Record) error {
	ctx, cancel := context.WithTimeout(ctx, 2*exitLimit) // to connect, and to serve
	defer cancel()
	c := s.connectionTo(r)
	if c == nil || c.Lost(ctx) != nil {
		leave, ok := s.turns.try(r.ID)
		if !ok { // what the call connects to is served, or the next round sees it
			return nil
		}
		defer leave()
		latest, err := s.find(ctx, r.ID)
		if err != nil || latest.Handle != r.Handle || latest.Status != Running ||
			!hasExit(latest) {
			return err
		}
		c, err := s.connect(ctx, latest)
		if err == nil {
			_, since := c.Activity()
			c.joined.Store(&since)
		}
		return err
	}
	s.keepServing(ctx, c, r)
	return nil
}
