package service

import (
	"context"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/service/place"
)

// ends has a timer for each box whose end this process has written, so that the end is not as late
// as the next round. The rounds are for the ends that processes have written that are gone.
type ends struct {
	mu     sync.Mutex
	closed bool
	timers map[string]*endTimer // by handle
}

type endTimer struct {
	at time.Time
	*time.Timer
}

// expect sets the timer of a box to the end in its note.
func (e *ends) expect(r *place.Record, at time.Time, f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.timers[r.Handle]; t != nil {
		if t.at.Equal(at) {
			return
		}
		t.Stop()
		delete(e.timers, r.Handle)
	}
	if at.IsZero() || e.closed {
		return
	}
	if e.timers == nil {
		e.timers = map[string]*endTimer{}
	}
	t := &endTimer{at: at}
	e.timers[r.Handle] = t
	t.Timer = time.AfterFunc(time.Until(at), func() {
		e.mu.Lock()
		if e.timers[r.Handle] == t {
			delete(e.timers, r.Handle)
		}
		e.mu.Unlock()
		f()
	})
}

func (e *ends) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, t := range e.timers {
		t.Stop()
	}
	e.timers = nil
}

// expectEnd makes this process look after the end in the note of a box.
func (s *Service) expectEnd(r *place.Record) {
	r = &place.Record{Handle: r.Handle, ID: r.ID, Note: r.Note}
	s.ends.expect(r, r.Note.Ends, func() { s.endNow(r) })
}

// endLimit bounds what is done at the end of a box.
const endLimit = time.Minute

// endNow does what is due at the end of a box. If it fails, the next round does it.
func (s *Service) endNow(r *place.Record) {
	ctx, done, err := s.begin(context.Background())
	if err != nil {
		return
	}
	defer func() { done(&err) }()
	limited, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	err = guard.Call("the Place", func() error {
		leave, err := s.turns.take(limited, r.ID)
		if err != nil {
			return err
		}
		defer leave()
		return s.applyEnd(limited, r)
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the end of a box has come, and it goes on", "box", r.ID, "error", err)
	}
}
