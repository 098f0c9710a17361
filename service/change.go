package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/service/place"
)

// Pause stops the programs of a box, which keep their memory. Pausing a paused box does nothing.
// The error is ErrNotFound if there is no such box. It is errors.ErrUnsupported if the Place cannot
// pause boxes; the box runs on.
func (s *Service) Pause(ctx context.Context, id string) error {
	return s.change(ctx, "pause", id, s.pauseBox)
}

func (s *Service) pauseBox(ctx context.Context, r *place.Record) error {
	if r.Status == Paused {
		return nil
	}
	if err := s.place.Pause(ctx, r.Handle); err != nil {
		return err
	}
	return s.note(ctx, r, func(n *place.Note) { n.Paused = time.Now() })
}

// Resume continues the programs of a paused box. If the programs have ended, Resume starts the box
// again, with its files; Info.Kept says which. Resuming a running box does nothing. The error is
// ErrNotFound if there is no such box.
func (s *Service) Resume(ctx context.Context, id string) error {
	return s.change(ctx, "resume", id, s.resume)
}

func (s *Service) resume(ctx context.Context, r *place.Record) error {
	return s.resumeUntil(ctx, r, time.Time{})
}

// resumeUntil is resume. If it resumes the box, ends is the box's end, unless ends is zero.
func (s *Service) resumeUntil(ctx context.Context, r *place.Record, ends time.Time) error {
	if r.Status == Running {
		return nil
	}
	spec, err := s.specOf(ctx, r)
	if err != nil {
		return err
	}
	if spec != nil {
		if err := s.makeRoom(ctx, spec, 1, r.ID); err != nil {
			return err
		}
	}
	if r.Ended {
		s.disconnect(r.ID)
	}
	// The generation changes before the programs start, so that the old key never reaches them.
	if r.Ended && r.Note.Checkpoint == "" {
		if err := s.note(ctx, r, func(n *place.Note) { n.Generation++ }); err != nil {
			return err
		}
	}
	kept, err := s.place.Resume(ctx, r.Handle, r.Note.Checkpoint)
	if err != nil {
		return err
	}
	r.Status, r.Ended = Running, false
	now := time.Now()
	err = s.note(ctx, r, func(n *place.Note) {
		if n.Checkpoint != "" && kept == KeptFiles {
			n.Generation++
		}
		n.Started, n.Used, n.Paused, n.Kept, n.Checkpoint = now, now, time.Time{}, kept, ""
		if !ends.IsZero() {
			n.Ends = ends.Round(0)
		}
	})
	if err == nil && hasExit(r) {
		if _, err := s.connect(ctx, r); err != nil && ctx.Err() == nil {
			s.logExit(r, err) // the next round tries again
		}
	}
	return err
}

// Delete removes a box with its files. The error is ErrNotFound if there is no such box.
func (s *Service) Delete(ctx context.Context, id string) error {
	return s.change(ctx, "delete", id, s.remove)
}

// Suspend writes a box's memory to disk and frees it. Resume brings its shells, variables and
// programs back. The error is ErrNotFound if there is no such box, and ErrConflict if the box is
// paused. If the engine or its runtime cannot suspend the box, the error is errors.ErrUnsupported
// and says why; the box runs on.
func (s *Service) Suspend(ctx context.Context, id string) error {
	return s.change(ctx, "suspend", id, func(ctx context.Context, r *place.Record) error {
		if r.Ended {
			return nil
		}
		if r.Status != Running {
			return fmt.Errorf("%w: it is %s: Resume it first", ErrConflict, r.Status)
		}
		// Else the checkpoint would hold boxd's end of the connection.
		s.disconnect(r.ID)
		checkpoint, err := s.place.Suspend(ctx, r.Handle)
		if err != nil {
			return err
		}
		return s.note(ctx, r, func(n *place.Note) {
			n.Checkpoint, n.Paused = checkpoint, time.Now()
		})
	})
}

// Snapshot makes an image of a box's files, and returns a spec that makes boxes of that image. The
// box is paused during the call. The spec is a copy of the box's own, with the image's name as
// Image and as ID, and so gives its boxes the spec's variables. The image has the names of the
// box's variables and labels, with empty values. It stays until it is removed from the engine. The
// error is ErrNotFound if there is no such box, ErrConflict if its spec is gone, and
// errors.ErrUnsupported if the Place cannot make images, or an image would not have the box's
// files, as with gVisor unless it was started with --overlay2=none.
func (s *Service) Snapshot(ctx context.Context, id string) (*Spec, error) {
	var made *Spec
	err := s.change(ctx, "snapshot", id, func(ctx context.Context, r *place.Record) error {
		spec, err := s.specOf(ctx, r)
		if err != nil {
			return err
		}
		if spec == nil {
			return fmt.Errorf("%w: its spec %q is gone", ErrConflict, r.Spec)
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
	return made, err
}

// note changes the note of a box. If another process has changed it at the same time, note tries
// again with the newer note.
func (s *Service) note(ctx context.Context, r *place.Record, change func(n *place.Note)) error {
	for {
		n := *r.Note
		change(&n)
		err := s.place.Note(ctx, r.Handle, n)
		s.known.forget(r.ID)
		if !errors.Is(err, ErrConflict) {
			if err == nil {
				n.Version = place.UnknownVersion
				r.Note = &n
				s.expectEnd(r)
			}
			return err
		}
		newer, err := s.find(ctx, r.ID)
		switch {
		case err != nil:
			return err
		case newer.Handle != r.Handle || newer.Note == nil:
			return ErrNotFound
		}
		r.Note = newer.Note
	}
}

// WaitRunning waits until a box runs and, if its spec has a Health, serves. The error is
// ErrNotFound if there is no such box. If the box is paused or has failed, WaitRunning returns
// ErrConflict at once, because such a box never runs by itself.
func (s *Service) WaitRunning(ctx context.Context, id string) (i *Info, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	for {
		i, err = s.infoWithHealth(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("wait for box %q: %w", id, err)
		}
		switch i.Status {
		case Running:
			return i, nil
		case Starting, Unknown:
		default:
			err := fmt.Errorf("wait for box %q: %w: it is %s", id, ErrConflict, statusText(i))
			if i.Status == Paused {
				err = fmt.Errorf("%w: Resume it first", err)
			}
			return nil, err
		}
		if err := sleep(ctx, 2*poll); err != nil {
			return nil, fmt.Errorf("wait for box %q, which is %s: %w", id, statusText(i), err)
		}
	}
}

// statusText returns a box's status, and in parentheses why the box has it.
func statusText(i *Info) string {
	if i.Detail == "" {
		return string(i.Status)
	}
	return fmt.Sprintf("%s (%s)", i.Status, i.Detail)
}

// infoWithHealth returns the Info of a box. If the spec has a Health, it connects to the box, so
// that the Status tells whether the box serves.
func (s *Service) infoWithHealth(ctx context.Context, id string) (i *Info, err error) {
	err = s.inTurn(ctx, id, func(r *place.Record) error {
		if r.Status == Running {
			if spec, err := s.specOf(ctx, r); err == nil && spec != nil && spec.Health != nil {
				if _, err := s.connect(ctx, r); err != nil {
					return err
				}
			}
		}
		i, err = s.info(ctx, r)
		return err
	})
	return i, err
}

// remove removes a box and disconnects from it.
func (s *Service) remove(ctx context.Context, r *place.Record) error {
	err := s.place.Remove(ctx, r.Handle)
	s.known.forget(r.ID)
	if err == nil || errors.Is(err, ErrNotFound) {
		s.ends.expect(r, time.Time{}, nil)
		s.disconnect(r.ID)
		return nil
	}
	return err
}
