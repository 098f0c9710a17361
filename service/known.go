package service

import (
	"context"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/service/place"
)

// A known holds the records of running boxes that this process has asked the Place for. The Place's
// events keep it right: each event about a box removes its record. While the Place does not tell of
// changes, known is empty.
type known struct {
	once sync.Once // starts the watch

	mu      sync.Mutex
	watched bool
	// changes counts what was forgotten. A record that was asked for before a change is not kept.
	changes int
	records map[string]*place.Record // by id; they do not change
}

// get returns the record of a box, nil if it is not known, and the number of changes so far.
func (k *known) get(id string) (*place.Record, int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.records[id], k.changes
}

// put keeps the record of a running box, if nothing has changed since get returned that number of
// changes. While a box is paused or started again, its note may be older than its status. Then the
// note still says since when the box was paused, and the record is not kept.
func (k *known) put(r *place.Record, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watched && k.changes == changes && r.Status == Running && r.Note != nil &&
		r.Note.Paused.IsZero() && r.Note.Checkpoint == "" {
		if k.records == nil {
			k.records = map[string]*place.Record{}
		}
		k.records[r.ID] = r
	}
}

// forget removes the record of a box.
func (k *known) forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	delete(k.records, id)
}

// watch says whether the Place tells of changes from now on. It removes all records.
func (k *known) watch(watched bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changes++
	k.watched = watched
	clear(k.records)
}

// compare removes the records that a list of all boxes does not confirm.
func (k *known) compare(all []*place.Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	listed := make(map[string]*place.Record, len(all))
	for _, r := range all {
		listed[r.ID] = r
	}
	for id, r := range k.records {
		if now := listed[id]; now == nil || now.Handle != r.Handle || now.Status != r.Status ||
			now.Note == nil || now.Note.Generation != r.Note.Generation {
			k.changes++
			delete(k.records, id)
		}
	}
}

// runningRecord returns the record of a box. If the box is known to run, the Place is not asked.
// The caller does not change the record.
func (s *Service) runningRecord(ctx context.Context, id string) (*place.Record, error) {
	if r, _ := s.known.get(id); r != nil {
		return r, nil
	}
	return s.askRecord(ctx, id)
}

// askRecord asks the Place for the record of a box, and keeps it in s.known.
func (s *Service) askRecord(ctx context.Context, id string) (*place.Record, error) {
	s.known.once.Do(func() { s.tasks.Go(s.watchKnown) })
	_, changes := s.known.get(id)
	r, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	s.known.put(r, changes)
	return r, nil
}

// watchPause is how long watchKnown waits before it watches a Place again.
const watchPause = time.Second

// watchKnown keeps s.known right until the service closes.
func (s *Service) watchKnown() {
	for {
		err := guard.Call("the Place", func() error {
			events, err := s.place.Watch(s.ctx)
			if err != nil {
				return err
			}
			for e := range events {
				if e.ID == "" {
					s.known.watch(e.Status == Running)
				} else {
					s.known.forget(e.ID)
				}
			}
			return nil
		})
		s.known.watch(false)
		if err != nil && s.ctx.Err() == nil {
			s.log.Warn("watch the boxes", "error", err)
		}
		if sleep(s.ctx, watchPause) != nil {
			return
		}
	}
}
