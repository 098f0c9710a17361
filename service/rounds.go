package service

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/service/place"
)

// runRounds calls round every s.every until ctx ends.
func (s *Service) runRounds(ctx context.Context) {
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		err := guard.Call("the Place, or the Specs,", func() error { return s.round(ctx) })
		if err != nil && ctx.Err() == nil {
			s.log.Warn("look after the boxes", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// round fills the pools, does what is due for each box, and removes what killed processes have
// left. If the Place cannot list the boxes, it changes no box.
func (s *Service) round(ctx context.Context) error {
	errs := []error{s.fillPools(ctx)}
	s.mu.Lock()
	before := make(map[string]*connection, len(s.connections))
	for id, c := range s.connections {
		before[id] = c
	}
	s.mu.Unlock()
	all, err := s.place.List(ctx, "")
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	s.known.compare(all)
	present := map[string]bool{}            // by handle and by ID
	running := map[string][]*place.Record{} // by spec
	var exits []*place.Record
	for _, r := range all {
		present[r.Handle] = true
		if r.ID != "" {
			present[r.ID] = true
		}
		switch {
		case s.abandoned(r):
			errs = append(errs, s.removeAbandoned(ctx, r))
		case endHasCome(r):
			if leave, ok := s.turns.try(r.ID); ok { // else the next round does it
				errs = append(errs, s.applyEnd(ctx, r))
				leave()
			}
		case r.ID == "" || r.Note == nil:
		default:
			if r.Status == Running {
				exits = append(exits, r)
				errs = append(errs, s.followHosts(r))
			}
			spec, err := s.specOf(ctx, r)
			errs = append(errs, err)
			if spec == nil {
				continue
			}
			errs = append(errs, s.applyLifecycle(ctx, r, spec))
			if r.Status == Running {
				running[spec.ID] = append(running[spec.ID], r)
			}
		}
	}
	for id := range running {
		if spec, err := s.spec(ctx, id); err == nil {
			errs = append(errs, s.pauseLeastUsed(ctx, spec, running[id], spec.Lifecycle.MaxRunning))
		}
	}
	s.forgetGone(before, present)
	s.serveExits(exits)
	return errors.Join(append(errs, s.place.Tidy(ctx))...)
}

// removeAbandoned removes a box whose start no process will finish.
func (s *Service) removeAbandoned(ctx context.Context, r *place.Record) error {
	s.log.Info("removing what a process has left of a start", "box", r.ID, "handle", r.Handle)
	if err := s.place.Remove(ctx, r.Handle); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// forgetGone disconnects from boxes that are gone, and forgets what this process knows about them.
// before are the connections that existed before the boxes were listed: a newer one is to a box
// that the list may lack.
func (s *Service) forgetGone(before map[string]*connection, there map[string]bool) {
	var gone []*connection
	s.mu.Lock()
	for id, c := range before {
		if s.connections[id] == c && !there[c.handle] {
			gone = append(gone, c)
			delete(s.connections, id)
		}
	}
	for id, u := range s.requests {
		if u.underway == 0 && !there[id] && time.Since(u.last) > time.Minute {
			delete(s.requests, id)
		}
	}
	for handle, first := range s.firstSeen {
		if !there[handle] && time.Since(first) > time.Minute {
			delete(s.firstSeen, handle)
		}
	}
	maps.DeleteFunc(s.exitFailures, func(handle, _ string) bool { return !there[handle] })
	s.mu.Unlock()
	for _, c := range gone {
		c.release()
	}
}
