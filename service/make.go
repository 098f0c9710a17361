package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/service/place"
)

// checkQuota returns ErrConflict if the owner has as many boxes as Spec.MaxPerOwner allows. handle
// is "" before the new box is made. Afterwards it is the new box's, and only boxes that are older
// count. So if several processes start boxes at once, the oldest stay.
func (s *Service) checkQuota(ctx context.Context, spec *Spec, o StartOptions, handle string) error {
	if spec.MaxPerOwner == 0 {
		return nil
	}
	records, err := s.records(ctx, "")
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r *place.Record) bool {
		return r.Note == nil || r.Note.Owner != o.Owner || r.Spec != o.Spec
	})
	slices.SortFunc(records, byAge)
	slices.Reverse(records)
	older := slices.IndexFunc(records, func(r *place.Record) bool { return r.Handle == handle })
	if older < 0 {
		older = len(records)
	}
	if older >= spec.MaxPerOwner {
		return fmt.Errorf("%w: owner %q has %d boxes of spec %q, and may have %d: Delete one first",
			ErrConflict, o.Owner, older, spec.ID, spec.MaxPerOwner)
	}
	return nil
}

// admit checks the quota again, because other processes may have made boxes at the same time. It
// removes the new box if there are too many. The Record that it returns has the published ports,
// which only the engine knows.
func (s *Service) admit(ctx context.Context, spec *Spec, o StartOptions,
	r *place.Record) (*place.Record, error) {
	if err := s.checkQuota(ctx, spec, o, r.Handle); err != nil {
		return nil, errors.Join(err, s.remove(ctx, r))
	}
	if len(spec.Config.Publish) > 0 {
		return s.find(ctx, r.ID)
	}
	return r, nil
}

// makeBox makes a box, or takes one from the pool. If another process has just taken the ID, the
// error is ErrConflict.
func (s *Service) makeBox(ctx context.Context, spec *Spec, o StartOptions) (*place.Record, error) {
	if err := s.makeRoom(ctx, spec, o.ID); err != nil {
		return nil, err
	}
	created := time.Now().Round(0) // without the monotonic clock, as a Place returns it
	for c := s.takeReady(spec); c != nil; c = s.takeReady(spec) {
		r, err := s.handOver(ctx, c, spec, o, created)
		if err == nil || ctx.Err() != nil || !errors.Is(err, errHandover) {
			return r, err
		}
		s.log.Warn("a box of the pool could not be handed over", "spec", spec.ID, "error", err)
	}
	box, handle, err := s.place.Create(ctx, spec.request(o.ID, created))
	if err != nil {
		return nil, err
	}
	return s.handOver(ctx, newConnection(box, handle), spec, o, created)
}

// errHandover says that the box itself has failed. Another box may not.
var errHandover = errors.New("hand over the box")

// handOver gives a box its environment, files and note, and its name if it is from a pool. If that
// fails, it removes the box. Until the box has both note and name, it counts as being started by
// this process.
func (s *Service) handOver(ctx context.Context, c *connection, spec *Spec, o StartOptions,
	created time.Time) (*place.Record, error) {
	r := &place.Record{Handle: c.handle, ID: o.ID, Spec: spec.ID, Status: Running, Created: created}
	// Name and HandOver run at once, because the engine needs milliseconds for each.
	named := guard.Go("the Place", func() error {
		if !c.pooled {
			return nil
		}
		return s.place.Name(ctx, c.handle, o.ID)
	})
	dir, err := remotebox.HandOver(ctx, c, o.Env, o.Files)
	if err != nil {
		err = fmt.Errorf("%w: %w", errHandover, err)
	} else {
		now := time.Now()
		r.Note = &place.Note{Owner: o.Owner, Created: created, Started: now, Used: now, Dir: dir,
			Metadata: maps.Clone(o.Metadata), Ends: o.Ends.Round(0)}
		err = s.place.Note(ctx, c.handle, *r.Note)
	}
	if err = errors.Join(err, <-named); err != nil {
		err = errors.Join(err, s.place.Remove(ctx, c.handle))
		c.release()
		return nil, err
	}
	s.setConnection(o.ID, c)
	return r, nil
}
