package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sandshell/sandshell/service/place"
)

// startLimit is how long a start can take. A box without a note that is older is abandoned.
const startLimit = 10 * time.Minute

// records returns the box of an ID, or all boxes of the service if id is "". It leaves out the
// boxes of pools, abandoned boxes, and those whose end has come.
func (s *Service) records(ctx context.Context, id string) ([]*place.Record, error) {
	all, err := s.place.List(ctx, id)
	if err != nil {
		return nil, err
	}
	records := slices.DeleteFunc(all, func(r *place.Record) bool {
		return r.ID == "" || s.abandoned(r) || isOver(r)
	})
	for _, r := range records {
		if r.Note == nil && r.Status != Missing {
			r.Status, r.Detail = Starting, "it is being started"
		}
	}
	return records, nil
}

// abandoned reports whether no process will finish the start of a box: its maker was killed, or has
// had startLimit since this process first saw the box.
func (s *Service) abandoned(r *place.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ID == "" {
		return r.Orphan
	}
	if r.Note != nil {
		delete(s.firstSeen, r.Handle)
		return false
	}
	first, known := s.firstSeen[r.Handle]
	if !known {
		first = time.Now()
		s.firstSeen[r.Handle] = first
	}
	return r.Orphan || time.Since(first) > startLimit
}

// find returns the box of an id. The error is ErrNotFound if there is none.
func (s *Service) find(ctx context.Context, id string) (*place.Record, error) {
	if !place.ValidID(id) {
		return nil, ErrNotFound // no box can have it
	}
	records, err := s.records(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, ErrNotFound
	}
	return records[0], nil
}

// spec returns the spec of an ID. The error is ErrNotFound if there is none.
func (s *Service) spec(ctx context.Context, id string) (*Spec, error) {
	spec, err := s.store.Get(ctx, id)
	if err == nil && spec == nil { // a caller's Specs may break its contract
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("look up spec %q: %w", id, err)
	}
	return spec, nil
}

// specOf returns the spec of a box. It returns nil if the spec was removed.
func (s *Service) specOf(ctx context.Context, r *place.Record) (*Spec, error) {
	spec, err := s.spec(ctx, r.Spec)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return spec, err
}
