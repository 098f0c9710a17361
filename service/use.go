package service

import (
	"sync"
	"time"

	"github.com/sandshell/sandshell/service/place"
)

// A requests counts the requests of this process to a box.
type requests struct {
	underway int
	last     time.Time // when the last one ended
}

// Used says that a request to a box begins. The caller calls ended when the request ends. A box
// with a request under way is not idle.
func (s *Service) Used(id string) (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.requests[id]
	if u == nil {
		u = &requests{}
		s.requests[id] = u
	}
	u.underway++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.underway--
		u.last = time.Now()
	})
}

// lastUse returns when a box was last in use, as far as this process knows. If the box is in use,
// it returns now.
func (s *Service) lastUse(r *place.Record, now time.Time) time.Time {
	last := r.Created
	for _, t := range []time.Time{r.Note.Started, r.Note.Used} {
		if t.After(last) {
			last = t
		}
	}
	s.mu.Lock()
	u := s.requests[r.ID]
	busy := u != nil && u.underway > 0
	if u != nil && u.last.After(last) {
		last = u.last
	}
	s.mu.Unlock()
	if c := s.connectionTo(r); c != nil {
		active, since := c.Activity()
		busy = busy || active
		joined := c.joined.Load()
		if since.After(last) && (joined == nil || since.After(*joined)) {
			last = since
		}
	}
	if busy {
		return now
	}
	return last
}
