package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/service/place"
)

// turns are locks by id: the calls of this process that change a box wait for each other.
type turns struct {
	mu   sync.Mutex
	byID map[string]*turn
}

type turn struct {
	free    chan struct{} // holds a token while no goroutine has the turn
	waiting int           // goroutines that have the turn or wait for it
}

// enter adds a goroutine to those that wait for the turn of an id.
func (t *turns) enter(id string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	its := t.byID[id]
	if its == nil {
		its = &turn{free: make(chan struct{}, 1)}
		its.free <- struct{}{}
		t.byID[id] = its
	}
	its.waiting++
	return its
}

// leave removes a goroutine from those that have the turn of an id or wait for it. had says that it
// had the turn.
func (t *turns) leave(id string, had bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	its := t.byID[id]
	if had {
		its.free <- struct{}{}
	}
	if its.waiting--; its.waiting == 0 {
		delete(t.byID, id)
	}
}

// take waits for the turn of an id. The caller calls leave at the end of the turn.
func (t *turns) take(ctx context.Context, id string) (leave func(), err error) {
	select {
	case <-t.enter(id).free:
		return func() { t.leave(id, true) }, nil
	case <-ctx.Done():
		t.leave(id, false)
		return nil, ctxerr.Of(ctx)
	}
}

// takeAll waits for the turns of several ids, in the order of the ids, so that no two calls wait
// for each other.
func (t *turns) takeAll(ctx context.Context, ids []string) (leave func(), err error) {
	var taken []func()
	leave = func() {
		for _, leaveOne := range taken {
			leaveOne()
		}
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		leaveOne, err := t.take(ctx, id)
		if err != nil {
			leave()
			return nil, err
		}
		taken = append(taken, leaveOne)
	}
	return leave, nil
}

// try takes the turn of an id, if no other goroutine has it.
func (t *turns) try(id string) (leave func(), ok bool) {
	select {
	case <-t.enter(id).free:
		return func() { t.leave(id, true) }, true
	default:
		t.leave(id, false)
		return nil, false
	}
}

// change is a call of a method that changes a box: it calls f with the box of an id, in turn. verb
// begins its errors.
func (s *Service) change(ctx context.Context, verb, id string,
	f func(ctx context.Context, r *place.Record) error) (err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { done(&err) }()
	if err = s.inTurn(ctx, id, func(r *place.Record) error { return f(ctx, r) }); err != nil {
		return fmt.Errorf("%s box %q: %w", verb, id, err)
	}
	return nil
}

// inTurn calls f with the box of an id, when it is this call's turn and no other process is
// starting or removing the box. The error is ErrNotFound if there is no such box.
func (s *Service) inTurn(ctx context.Context, id string, f func(r *place.Record) error) error {
	leave, err := s.turns.take(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	r, err := s.waitSettled(ctx, id)
	if err != nil {
		return err
	}
	return f(r)
}

// poll is the time between two looks at what another process does.
const poll = 20 * time.Millisecond

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-time.After(d):
		return nil
	}
}

// waitSettled returns the box of an id, when no process is starting or removing it. It removes what
// a killed process has left of a start, and a box whose end has come. The error is ErrNotFound if
// there is no such box. The caller has the turn of the id.
func (s *Service) waitSettled(ctx context.Context, id string) (*place.Record, error) {
	if !place.ValidID(id) {
		return nil, ErrNotFound
	}
	for {
		records, err := s.place.List(ctx, id)
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			return nil, ErrNotFound
		}
		switch r := records[0]; {
		case s.abandoned(r) || isOver(r):
			if err := s.remove(ctx, r); err != nil {
				return nil, err
			}
			continue
		case r.Note != nil && r.Status != Missing:
			return r, nil
		}
		if err := sleep(ctx, poll); err != nil {
			return nil, err
		}
	}
}
