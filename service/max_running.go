package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sandshell/sandshell/service/place"
)

// makeRoom pauses the least recently used boxes of a spec, so that n more can run without exceeding
// Lifecycle.MaxRunning. The box of an id is not one of those that run already.
func (s *Service) makeRoom(ctx context.Context, spec *Spec, n int, id string) error {
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
	return s.pauseLeastUsed(ctx, spec, running, spec.Lifecycle.MaxRunning-n)
}

// pauseLeastUsed pauses all but the n most recently used boxes. It skips boxes whose turn a call
// has. The next round pauses those.
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
