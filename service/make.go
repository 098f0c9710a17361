package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/service/place"
)

// checkQuota returns ErrConflict if the owner would have more boxes, with n new ones, than
// Spec.MaxPerOwner allows. handle is "" before the new boxes are made. Afterwards it is that of
// one, n is 1, and only boxes that are older count. So if several processes start boxes at once,
// the oldest stay.
func (s *Service) checkQuota(ctx context.Context, spec *Spec, o StartOptions, n int,
	handle string) error {
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
	if older > spec.MaxPerOwner-n {
		return fmt.Errorf("%w: owner %q has %d of the %d boxes that spec %q allows an owner: "+
			"Delete %s first", ErrConflict, o.Owner, older, spec.MaxPerOwner, spec.ID,
			numberText(older+n-spec.MaxPerOwner))
	}
	return nil
}

// numberText returns "one" for 1.
func numberText(n int) string {
	if n == 1 {
		return "one"
	}
	return strconv.Itoa(n)
}

// admit checks the quota again, because other processes may have made boxes at the same time. It
// removes the new box if there are too many. The Record that it returns has the published ports,
// which only the engine knows.
func (s *Service) admit(ctx context.Context, spec *Spec, o StartOptions,
	r *place.Record) (*place.Record, error) {
	if err := s.checkQuota(ctx, spec, o, 1, r.Handle); err != nil {
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
	if err := s.makeRoom(ctx, spec, 1, o.ID); err != nil {
		return nil, err
	}
	created := time.Now().Round(0) // without the monotonic clock, as a Place returns it
	n := place.Note{Created: created, Egress: spec.rules(o), Hosts: slices.Clone(o.Hosts),
		PauseAtEnd: o.PauseAtEnd, WakeFor: o.WakeFor}
	for c := s.takeReady(spec); c != nil; c = s.takeReady(spec) {
		r, err := s.handOver(ctx, c, o, n)
		if err == nil || ctx.Err() != nil || !errors.Is(err, errHandover) {
			return r, err
		}
		s.log.Warn("a box of the pool could not be handed over", "spec", spec.ID, "error", err)
	}
	request := spec.request(o.ID, created)
	request.PauseAtEnd = o.PauseAtEnd
	box, handle, err := s.place.Create(ctx, request)
	if err != nil {
		return nil, err
	}
	return s.handOver(ctx, newConnection(box, handle), o, n)
}

// errHandover says that the box itself has failed. Another box may not.
var errHandover = errors.New("hand over the box")

// handOver gives a box its environment, files and note, and its name if it is from a pool. If that
// fails, it removes the box. Until the box has both note and name, it counts as being started by
// this process. n is the note without what o says. If it has a Dir, the box is a copy, and gets no
// command unless there are variables.
func (s *Service) handOver(ctx context.Context, c *connection, o StartOptions, n place.Note) (
	*place.Record, error) {
	r := &place.Record{Handle: c.handle, ID: o.ID, Spec: o.Spec, Status: Running,
		Created: n.Created}
	// Name and HandOver run at once, because the engine needs milliseconds for each.
	named := guard.Go("the Place", func() error {
		if !c.pooled {
			return nil
		}
		return s.place.Name(ctx, c.handle, o.ID)
	})
	var err error
	if n.Dir == "" || len(o.Env) > 0 {
		var dir string
		if dir, err = remotebox.HandOver(ctx, c, o.Env, o.Files); n.Dir == "" {
			n.Dir = dir
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errHandover, err)
	} else {
		now := time.Now()
		n.Owner, n.Started, n.Used = o.Owner, now, now
		n.Metadata, n.Ends = maps.Clone(o.Metadata), o.Ends.Round(0)
		r.Note = &n
		if err = s.serveExit(ctx, c, r); err != nil {
			err = fmt.Errorf("Spec.Egress: serve the way out: %w", err)
		} else {
			err = s.place.Note(ctx, c.handle, *r.Note)
		}
	}
	if err = errors.Join(err, <-named); err != nil {
		err = errors.Join(err, s.place.Remove(ctx, c.handle))
		c.release()
		return nil, err
	}
	s.setConnection(o.ID, c)
	s.expectEnd(r)
	return r, nil
}
