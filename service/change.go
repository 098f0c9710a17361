package service

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// change changes the box of an id when it is its turn. It returns false if there is none, or none
// any more.
func (s *Service) change(ctx context.Context, what, id string,
	f func(r *Record) error) (there bool, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { done(&err) }()
	if !validID.MatchString(id) {
		return false, nil
	}
	err = s.inTurn(ctx, id, f)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s box %q: %w", what, id, err)
	}
	return true, nil
}

// inTurn calls f about the box of an id when it is its turn, and nobody is changing it. It returns
// ErrNotFound if there is none.
func (s *Service) inTurn(ctx context.Context, id string, f func(r *Record) error) error {
	leave, err := s.turns.take(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	r, err := s.settled(ctx, id)
	if err != nil {
		return err
	}
	if r == nil {
		return ErrNotFound
	}
	return f(r)
}

// Pause stops what runs in a box, which keeps its memory. Where boxes cannot be paused, the error
// is errors.ErrUnsupported, and the box runs on. It returns false if there is no such box.
func (s *Service) Pause(ctx context.Context, id string) (bool, error) {
	return s.change(ctx, "pause", id, func(r *Record) error { return s.pause(ctx, r) })
}

func (s *Service) pause(ctx context.Context, r *Record) error {
	if r.Status == Paused {
		return nil
	}
	if err := s.place.Pause(ctx, r.Handle); err != nil {
		return err
	}
	return s.note(ctx, r, func(n *Note) { n.Paused = time.Now() })
}

// Resume has a paused box go on; one whose programs have ended is started again, with its files.
// Info.Kept says which. It returns false if there is no such box.
func (s *Service) Resume(ctx context.Context, id string) (bool, error) {
	return s.change(ctx, "resume", id, func(r *Record) error { return s.resume(ctx, r) })
}

func (s *Service) resume(ctx context.Context, r *Record) error {
	if r.Status == Running {
		return nil
	}
	spec, err := s.store.Get(ctx, r.Spec)
	if err != nil {
		return fmt.Errorf("look up spec %q: %w", r.Spec, err)
	}
	if spec != nil {
		if err := s.makeRoom(ctx, spec, r.ID); err != nil {
			return err
		}
	}
	if r.Ended {
		s.drop(r.ID)
	}
	if r.Ended && r.Note.Checkpoint == "" { // first: the old key never is one of the new programs
		if err := s.note(ctx, r, func(n *Note) { n.Generation++ }); err != nil {
			return err
		}
	}
	kept, err := s.place.Resume(ctx, r.Handle, r.Note.Checkpoint)
	if err != nil {
		return err
	}
	r.Status, r.Ended = Running, false
	now := time.Now()
	return s.note(ctx, r, func(n *Note) {
		if n.Checkpoint != "" && kept == KeptFiles {
			n.Generation++
		}
		n.Started, n.Used, n.Paused, n.Kept, n.Checkpoint = now, now, time.Time{}, kept, ""
	})
}

// Delete removes a box with its files. It returns false if there is no such box.
func (s *Service) Delete(ctx context.Context, id string) (bool, error) {
	return s.change(ctx, "delete", id, func(r *Record) error { return s.remove(ctx, r) })
}

// Suspend writes a box's memory to disk and frees it. Resume brings its shells, variables and
// programs back. Where the engine or its runtime cannot do that, the error is errors.ErrUnsupported
// and says why, and the box runs on. It returns false if there is no such box.
func (s *Service) Suspend(ctx context.Context, id string) (bool, error) {
	return s.change(ctx, "suspend", id, func(r *Record) error {
		if r.Ended {
			return nil
		}
		if r.Status != Running {
			return fmt.Errorf("%w: it is %s: Resume it first", ErrConflict, r.Status)
		}
		s.drop(r.ID) // the program in the box that connects us would be in the checkpoint
		checkpoint, err := s.place.Suspend(ctx, r.Handle)
		if err != nil {
			return err
		}
		return s.note(ctx, r, func(n *Note) { n.Checkpoint, n.Paused = checkpoint, time.Now() })
	})
}

// Snapshot makes an image of a box's files, while it is paused for a moment, and returns a spec
// that makes boxes of it: the box's own spec with that Image, and with the image's name as ID; the
// box's own environment and labels are not in it. The image stays until it is removed from the
// engine. If there is no such box, the error is ErrNotFound; where no images are made,
// errors.ErrUnsupported.
func (s *Service) Snapshot(ctx context.Context, id string) (*Spec, error) {
	var made *Spec
	there, err := s.change(ctx, "snapshot", id, func(r *Record) error {
		spec, err := s.store.Get(ctx, r.Spec)
		if err != nil {
			return fmt.Errorf("look up spec %q: %w", r.Spec, err)
		}
		if spec == nil {
			return fmt.Errorf("%w: its spec %q is not there any more", ErrConflict, r.Spec)
		}
		image, err := s.place.Snapshot(ctx, r.Handle)
		if err != nil {
			return err
		}
		copied := *spec
		copied.ID, copied.Config.Image = image, image
		made = &copied
		return nil
	})
	if err == nil && !there {
		err = fmt.Errorf("snapshot box %q: %w", id, ErrNotFound)
	}
	return made, err
}

// note changes what is kept with a box.
func (s *Service) note(ctx context.Context, r *Record, change func(n *Note)) error {
	for {
		n := *r.Note
		change(&n)
		err := s.place.Note(ctx, r.Handle, n)
		if !errors.Is(err, ErrConflict) {
			if err == nil {
				n.Version = unknownVersion
				r.Note = &n
			}
			return err
		}
		newer, err := s.find(ctx, r.ID)
		switch {
		case err != nil:
			return err
		case newer == nil || newer.Handle != r.Handle || newer.Note == nil:
			return ErrNotFound
		}
		r.Note = newer.Note
	}
}

// WaitRunning waits until a box runs, and serves if its spec has a health check, and tells of it.
// It returns at once, with an error, if the box cannot come to that by itself: ErrNotFound, or
// ErrConflict for one that is paused or has failed.
func (s *Service) WaitRunning(ctx context.Context, id string) (i *Info, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	for {
		i, err = s.waited(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("wait for box %q: %w", id, err)
		}
		switch i.Status {
		case Running:
			return i, nil
		case Starting, Unknown:
		default:
			return nil, fmt.Errorf("wait for box %q: %w: it is %s: %s", id, ErrConflict, i.Status,
				i.Detail)
		}
		if err := pause(ctx, 2*poll); err != nil {
			return nil, fmt.Errorf("wait for box %q, which is %s (%s): %w", id, i.Status, i.Detail,
				err)
		}
	}
}

func (s *Service) waited(ctx context.Context, id string) (i *Info, err error) {
	err = s.inTurn(ctx, id, func(r *Record) error {
		if r.Status == Running {
			if spec, err := s.store.Get(ctx, r.Spec); err == nil && spec != nil &&
				spec.Health != nil {
				if _, err := s.hold(ctx, r); err != nil {
					return err
				}
			}
		}
		i, err = s.info(ctx, r)
		return err
	})
	return i, err
}
