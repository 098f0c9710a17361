package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/service/place"
)

// A use is what this process knows about requests to a box.
type use struct {
	now  int // how many are under way
	last time.Time
}

// Used says that a request to a box begins. The caller calls ended when the request ends. A box
// with a request under way is not idle.
func (s *Service) Used(id string) (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[id]
	if u == nil {
		u = &use{}
		s.used[id] = u
	}
	u.now++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.now--
		u.last = time.Now()
	})
}

// lastUse returns when a box was last in use, as far as this process knows. For a box in use, that
// is now.
func (s *Service) lastUse(r *place.Record, now time.Time) time.Time {
	last := r.Created
	for _, t := range []time.Time{r.Note.Started, r.Note.Used} {
		if t.After(last) {
			last = t
		}
	}
	s.mu.Lock()
	u := s.used[r.ID]
	busy := u != nil && u.now > 0
	if u != nil && u.last.After(last) {
		last = u.last
	}
	s.mu.Unlock()
	if h := s.holding(r); h != nil {
		active, since := h.Activity()
		busy = busy || active
		if since.After(last) {
			last = since
		}
	}
	if busy {
		return now
	}
	return last
}

// A fate says what is due for a box.
type fate int

const (
	nothing fate = iota
	toPause
	toDelete
	toDate // it is paused, and its note does not say since when
)

// due returns what is due for a box that was last used at used, and why. held says that this
// process would know of any later use.
func (l Lifecycle) due(r *place.Record, used time.Time, held bool, now time.Time) (fate, string) {
	idle := l.Idle
	if !held {
		// Another process may use the box, and only notes that from time to time.
		idle += idle / 2
	}
	switch {
	case r.Note == nil:
	case r.Status == Running && l.Session > 0 && now.Sub(r.Note.Started) >= l.Session:
		return toPause, "its session is over"
	case r.Status == Running && l.Idle > 0 && now.Sub(used) >= idle:
		return toPause, "it is idle"
	case r.Status == Paused && r.Note.Paused.IsZero():
		return toDate, ""
	case r.Status == Paused && l.Keep > 0 && now.Sub(r.Note.Paused) >= l.Keep:
		return toDelete, "it has not run for long"
	}
	return nothing, ""
}

// stale returns how old Note.Used may become while the box is in use.
func (l Lifecycle) stale() time.Duration {
	if l.Idle > 0 {
		return l.Idle / 4
	}
	return 5 * time.Minute
}

// attend calls round every s.every until ctx ends.
func (s *Service) attend(ctx context.Context) {
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

// round does once what is due for all boxes. If the Place cannot list the boxes, it changes none.
func (s *Service) round(ctx context.Context) error {
	errs := []error{s.fillPools(ctx)}
	s.mu.Lock()
	before := make(map[string]*held, len(s.held))
	for id, h := range s.held {
		before[id] = h
	}
	s.mu.Unlock()
	all, err := s.place.List(ctx, "")
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	there := map[string]bool{} // handles and ids
	running := map[string][]*place.Record{}
	for _, r := range all {
		there[r.Handle] = true
		if r.ID != "" {
			there[r.ID] = true
		}
		switch {
		case s.abandoned(r):
			errs = append(errs, s.clear(ctx, r))
		case r.ID == "" || r.Note == nil:
		default:
			spec, err := s.specOf(ctx, r)
			errs = append(errs, err)
			if spec == nil {
				continue
			}
			errs = append(errs, s.oversee(ctx, r, spec))
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
	s.forgetGone(before, there)
	return errors.Join(append(errs, s.place.Tidy(ctx))...)
}

// clear removes what a killed process has left.
func (s *Service) clear(ctx context.Context, r *place.Record) error {
	s.log.Info("removing what a process has left of a start", "box", r.ID, "handle", r.Handle)
	if err := s.place.Remove(ctx, r.Handle); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// oversee does what is due for a box.
func (s *Service) oversee(ctx context.Context, r *place.Record, spec *Spec) error {
	now := time.Now()
	held := s.connected(ctx, r)
	used := s.lastUse(r, now)
	what, _ := spec.Lifecycle.due(r, used, held, now)
	if what == nothing && (r.Status != Running || used.Sub(r.Note.Used) < spec.Lifecycle.stale()) {
		return nil
	}
	// If a call has the turn of the box, the next round sees what it has done.
	leave, ok := s.turns.try(r.ID)
	if !ok {
		return nil
	}
	defer leave()
	latest, err := s.settled(ctx, r.ID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || latest.Handle != r.Handle {
		return err
	}
	*r = *latest
	used = s.lastUse(r, now)
	what, why := spec.Lifecycle.due(r, used, held, now)
	switch what {
	case toPause:
		s.log.Info("pausing a box", "box", r.ID, "because", why)
		err = s.pauseBox(ctx, r)
		r.Status = Paused
	case toDelete:
		s.log.Info("deleting a box", "box", r.ID, "because", why)
		err = s.remove(ctx, r)
	case toDate:
		err = s.note(ctx, r, func(n *place.Note) { n.Paused = now })
	default:
		if r.Status == Running && used.After(r.Note.Used) {
			err = s.note(ctx, r, func(n *place.Note) { n.Used = used })
		}
	}
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// makeRoom pauses the least recently used boxes of a spec, so that the box of an id may run too.
func (s *Service) makeRoom(ctx context.Context, spec *Spec, id string) error {
	if spec.Lifecycle.MaxRunning == 0 {
		return nil
	}
	records, err := s.records(ctx, "")
	if err != nil {
		return err
	}
	running := slices.DeleteFunc(records, func(r *place.Record) bool {
		return r.Spec != spec.ID || r.Status != Running || r.ID == id
	})
	return s.pauseLeastUsed(ctx, spec, running, spec.Lifecycle.MaxRunning-1)
}

// pauseLeastUsed pauses all but the n most recently used boxes. It leaves out boxes whose turn a
// call has: the next round pauses those.
func (s *Service) pauseLeastUsed(ctx context.Context, spec *Spec, running []*place.Record,
	n int) error {
	if spec.Lifecycle.MaxRunning == 0 || len(running) <= n {
		return nil
	}
	now := time.Now()
	used := map[*place.Record]time.Time{}
	for _, r := range running {
		used[r] = s.lastUse(r, now)
	}
	slices.SortFunc(running, func(a, b *place.Record) int {
		return cmp.Or(used[a].Compare(used[b]), byAge(b, a))
	})
	surplus := len(running) - n
	for _, r := range running {
		if surplus == 0 {
			return nil
		}
		leave, ok := s.turns.try(r.ID)
		if !ok {
			continue
		}
		s.log.Info("pausing a box", "box", r.ID, "because", "too many run")
		err := s.pauseBox(ctx, r)
		leave()
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		surplus--
	}
	return nil
}

// forgetGone disconnects from boxes that are gone. before are the boxes that this process was
// connected to before it listed the boxes.
func (s *Service) forgetGone(before map[string]*held, there map[string]bool) {
	var gone []*held
	s.mu.Lock()
	for id, h := range before {
		if s.held[id] == h && !there[h.handle] {
			gone = append(gone, h)
			delete(s.held, id)
		}
	}
	for id, u := range s.used {
		if u.now == 0 && !there[id] && time.Since(u.last) > time.Minute {
			delete(s.used, id)
		}
	}
	for handle, first := range s.seen {
		if !there[handle] && time.Since(first) > time.Minute {
			delete(s.seen, handle)
		}
	}
	s.mu.Unlock()
	for _, h := range gone {
		h.release()
	}
}
