package service

import (
	"context"
	"errors"
	"time"

	"github.com/sandshell/sandshell/service/place"
)

// A dueAction is what a Lifecycle demands for a box.
type dueAction int

const (
	dueNothing dueAction = iota
	duePause
	dueDelete
	dueDate // the box is paused, and its note does not say since when
)

// due returns what is due for a box that was last used at used, and why. alone says that only this
// process is connected to the box, and so knows of any later use.
func (l Lifecycle) due(r *place.Record, used time.Time, alone bool,
	now time.Time) (action dueAction, why string) {
	idle := l.Idle
	if !alone {
		// Another process may use the box, and updates Note.Used only from time to time.
		idle += idle / 2
	}
	switch {
	case r.Note == nil:
	case r.Status == Running && l.Session > 0 && now.Sub(r.Note.Started) >= l.Session:
		return duePause, "its session is over"
	case r.Status == Running && l.Idle > 0 && now.Sub(used) >= idle:
		return duePause, "it is idle"
	case r.Status == Paused && r.Note.Paused.IsZero():
		return dueDate, ""
	case r.Status == Paused && l.Keep > 0 && now.Sub(r.Note.Paused) >= l.Keep:
		return dueDelete, "it has not run for long"
	}
	return dueNothing, ""
}

// pauses returns when a box that was last used at used will be paused; zero if it will not.
func (l Lifecycle) pauses(r *place.Record, used time.Time) (at time.Time) {
	if r.Note == nil || r.Status != Running {
		return at
	}
	if l.Session > 0 {
		at = r.Note.Started.Add(l.Session)
	}
	if l.Idle > 0 {
		at = earlier(at, used.Add(l.Idle))
	}
	return at
}

// deletes returns when a box that does not run will be deleted; zero if it will not.
func (l Lifecycle) deletes(r *place.Record) (at time.Time) {
	if r.Note == nil || r.Status != Paused || r.Note.Paused.IsZero() || l.Keep <= 0 {
		return at
	}
	return r.Note.Paused.Add(l.Keep)
}

// earlier returns the earlier of two times. A zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// notePeriod returns how old Note.Used may become while the box is in use.
func (l Lifecycle) notePeriod() time.Duration {
	if l.Idle > 0 {
		return l.Idle / 4
	}
	return 5 * time.Minute
}

// applyLifecycle does what the spec's Lifecycle demands for a box. If the box is in use, it updates
// Note.Used from time to time.
func (s *Service) applyLifecycle(ctx context.Context, r *place.Record, spec *Spec) error {
	now := time.Now()
	alone := s.checkConnection(ctx, r)
	used := s.lastUse(r, now)
	what, _ := spec.Lifecycle.due(r, used, alone, now)
	if what == dueNothing &&
		(r.Status != Running || used.Sub(r.Note.Used) < spec.Lifecycle.notePeriod()) {
		return nil
	}
	// If a call has the turn of the box, the next round sees what it has done.
	leave, ok := s.turns.try(r.ID)
	if !ok {
		return nil
	}
	defer leave()
	latest, err := s.waitSettled(ctx, r.ID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || latest.Handle != r.Handle {
		return err
	}
	*r = *latest
	used = s.lastUse(r, now)
	what, why := spec.Lifecycle.due(r, used, alone, now)
	switch what {
	case duePause:
		s.log.Info("pausing a box", "box", r.ID, "because", why)
		err = s.pauseBox(ctx, r)
		r.Status = Paused
	case dueDelete:
		s.log.Info("deleting a box", "box", r.ID, "because", why)
		err = s.remove(ctx, r)
	case dueDate:
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
