package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/service/place"
)

// StartOptions say which box to start. The zero value starts a new box of the default spec.
type StartOptions struct {
	// Spec is the ID of a spec. Default: that of Specs.Default.
	Spec string
	// ID is the box's id: a letter or digit, and up to 127 more letters, digits, "_", "." and "-".
	// If it is empty, Start makes one.
	ID string
	// Owner is at most 128 bytes of printable text. The service only compares it. Anyone who can
	// ask the engine sees it.
	Owner string
	// Env is added to the box's environment, as "NAME=value". It may be secret: only the memory of
	// the box holds it. If a Start resumes a box whose programs have ended, the box gets the Env of
	// that Start.
	Env []string
	// Files are copied into the directory where sessions start, when the box is made. If Files is
	// nil, none are.
	Files fs.FS
}

// validate checks o, sets its Spec if that is empty, and returns the spec.
func (s *Service) validate(ctx context.Context, o *StartOptions) (spec *Spec, err error) {
	switch {
	case !validID.MatchString(o.ID):
		return nil, invalid("ID", "%q: write a letter or digit, and up to 127 more letters, "+
			"digits, \"_\", \".\" and \"-\"", o.ID)
	case len(o.Owner) > 128 || !utf8.ValidString(o.Owner) ||
		strings.ContainsFunc(o.Owner, func(r rune) bool { return !unicode.IsPrint(r) }):
		return nil, invalid("Owner", "%.200q: write printable text of at most 128 bytes", o.Owner)
	}
	if err := remotebox.CheckEnv(o.Env); err != nil {
		return nil, invalid("Env", "%v", err)
	}
	if o.Spec == "" {
		spec, err = s.store.Default(ctx)
		if errors.Is(err, ErrNotFound) || spec == nil && err == nil {
			return nil, invalid("Spec", "it is empty, and there is no default: name a spec")
		}
	} else {
		spec, err = s.spec(ctx, o.Spec)
	}
	if err != nil {
		return nil, err
	}
	o.Spec = spec.ID
	return spec, spec.Check()
}

// spec returns the spec of an ID. The error is ErrNotFound if there is none.
func (s *Service) spec(ctx context.Context, id string) (*Spec, error) {
	spec, err := s.store.Get(ctx, id)
	if err == nil && spec == nil { // a Specs of somebody else may break its contract
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("look up spec %q: %w", id, err)
	}
	return spec, nil
}

// specOf returns the spec of a box; nil if that has been removed.
func (s *Service) specOf(ctx context.Context, r *place.Record) (*Spec, error) {
	spec, err := s.spec(ctx, r.Spec)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return spec, err
}

// Start starts a box, or resumes the one that has the id already. The error is ErrConflict if that
// one has another spec or owner, or if the owner has too many boxes; it is ErrNotFound if there is
// no such spec. If several processes start one id at once, they get one box. If Start fails, or if
// ctx ends before Start returns, it leaves no box that was not there before.
func (s *Service) Start(ctx context.Context, o StartOptions) (_ *Info, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	fresh := o.ID == ""
	if fresh {
		o.ID = strings.ToLower(rand.Text())
	}
	spec, err := s.validate(ctx, &o)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Info, error) { return nil, fmt.Errorf("start box %q: %w", o.ID, err) }
	leave, err := s.turns.take(ctx, o.ID)
	if err != nil {
		return fail(err)
	}
	defer leave()
	for attempt := 1; ; attempt++ {
		if !fresh {
			r, err := s.startExisting(ctx, o)
			if err == nil {
				return s.info(ctx, r)
			}
			if !errors.Is(err, ErrNotFound) {
				return fail(err)
			}
		}
		if err := s.checkQuota(ctx, spec, o, ""); err != nil {
			return fail(err)
		}
		r, err := s.make(ctx, spec, o)
		if err == nil {
			if err = s.checkQuota(ctx, spec, o, r.Handle); err != nil {
				return fail(errors.Join(err, s.remove(ctx, r)))
			}
			return s.infoOfNew(ctx, spec, r)
		}
		if !errors.Is(err, ErrConflict) || attempt == maxAttempts {
			return fail(err)
		}
		// Another process has just taken the name, or has not quite let go of it.
		fresh = false
		if err := sleep(ctx, poll); err != nil {
			return fail(err)
		}
	}
}

// startExisting resumes the box that has o.ID already. The error is ErrNotFound if there is none,
// or if another process deletes it meanwhile.
func (s *Service) startExisting(ctx context.Context, o StartOptions) (*place.Record, error) {
	r, err := s.settled(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	if err := s.resumeFor(ctx, r, o); err != nil {
		return nil, err
	}
	return s.find(ctx, o.ID)
}

// infoOfNew returns the Info of a box that has just been made. If the engine publishes ports of it,
// infoOfNew asks the engine which.
func (s *Service) infoOfNew(ctx context.Context, spec *Spec, r *place.Record) (*Info, error) {
	if len(spec.Config.Publish) > 0 {
		again, err := s.find(ctx, r.ID) // not found: it has been deleted meanwhile
		if err != nil {
			return nil, fmt.Errorf("start box %q: %w", r.ID, err)
		}
		r = again
	}
	return s.info(ctx, r)
}

const (
	poll        = 20 * time.Millisecond // between two looks at what another process does
	maxAttempts = 25                    // to make a box whose name is taken, though there is no box
)

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-time.After(d):
		return nil
	}
}

// settled returns the box of an id, once no process is starting or removing it. It removes what a
// killed process has left of a start. The error is ErrNotFound if there is no such box. The caller
// has the turn of the id.
func (s *Service) settled(ctx context.Context, id string) (*place.Record, error) {
	if !validID.MatchString(id) {
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
		case s.abandoned(r):
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

// resumeFor resumes an existing box for a Start. The error is ErrConflict if the box has another
// owner or spec.
func (s *Service) resumeFor(ctx context.Context, r *place.Record, o StartOptions) error {
	switch {
	case r.Note.Owner != o.Owner: // first: another owner learns nothing else about the box
		return fmt.Errorf("%w: the id is taken: take another", ErrConflict)
	case r.Spec != o.Spec:
		return fmt.Errorf("%w: there is a box of that id, of the spec %q: Delete it first, or "+
			"take another id", ErrConflict, r.Spec)
	}
	fresh := r.Ended && r.Note.Checkpoint == ""
	if err := s.resume(ctx, r); err != nil {
		return err
	}
	if !fresh || len(o.Env) == 0 {
		return nil
	}
	h, err := s.hold(ctx, r)
	if err == nil {
		_, err = remotebox.HandOver(ctx, h, o.Env, nil)
	}
	return err
}

// checkQuota checks Spec.MaxPerOwner. handle is "" before a box is made, and the new box's
// afterwards. If several processes start boxes at once, the older boxes count first.
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
	before := slices.IndexFunc(records, func(r *place.Record) bool { return r.Handle == handle })
	if before < 0 {
		before = len(records)
	}
	if before >= spec.MaxPerOwner {
		return fmt.Errorf("%w: owner %q has %d boxes of spec %q, and may have %d: Delete one first",
			ErrConflict, o.Owner, before, spec.ID, spec.MaxPerOwner)
	}
	return nil
}

// make makes a box, or takes one from the pool. If another process has just taken the id, the error
// is ErrConflict.
func (s *Service) make(ctx context.Context, spec *Spec, o StartOptions) (*place.Record, error) {
	if err := s.makeRoom(ctx, spec, o.ID); err != nil {
		return nil, err
	}
	created := time.Now().Round(0) // the wall clock alone: it is compared with what is read back
	for h := s.takeReady(spec); h != nil; h = s.takeReady(spec) {
		r, err := s.handOver(ctx, h, spec, o, created)
		if err == nil || ctx.Err() != nil || !errors.Is(err, errHandover) {
			return r, err
		}
		s.log.Warn("a box of the pool could not be handed over", "spec", spec.ID, "error", err)
	}
	box, handle, err := s.place.Create(ctx, spec.request(o.ID, created))
	if err != nil {
		return nil, err
	}
	return s.handOver(ctx, newHeld(box, handle), spec, o, created)
}

// errHandover says that the box itself has failed. Another box may not.
var errHandover = errors.New("hand over the box")

// handOver gives a box its environment, files and note, and its name if it is from a pool. If that
// fails, it removes the box. Until the box has both note and name, it counts as being started by
// this process.
func (s *Service) handOver(ctx context.Context, h *held, spec *Spec, o StartOptions,
	created time.Time) (*place.Record, error) {
	r := &place.Record{Handle: h.handle, ID: o.ID, Spec: spec.ID, Status: Running, Created: created}
	// The name and the rest at once: the engine needs milliseconds for each.
	named := guard.Go("the Place", func() error {
		if !h.pooled {
			return nil
		}
		return s.place.Name(ctx, h.handle, o.ID)
	})
	dir, err := remotebox.HandOver(ctx, h, o.Env, o.Files)
	if err != nil {
		err = fmt.Errorf("%w: %w", errHandover, err)
	} else {
		now := time.Now()
		r.Note = &place.Note{Owner: o.Owner, Created: created, Started: now, Used: now, Dir: dir}
		err = s.place.Note(ctx, h.handle, *r.Note)
	}
	if err = errors.Join(err, <-named); err != nil {
		err = errors.Join(err, s.place.Remove(ctx, h.handle))
		h.release()
		return nil, err
	}
	s.keep(o.ID, h)
	return r, nil
}

// remove removes a box with all that is kept with it.
func (s *Service) remove(ctx context.Context, r *place.Record) error {
	err := s.place.Remove(ctx, r.Handle)
	if err == nil || errors.Is(err, ErrNotFound) {
		s.drop(r.ID)
		return nil
	}
	return err
}
