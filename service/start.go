package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/remotebox"
	"github.com/sandshell/sandshell/service/place"
)

// StartOptions say which box to start. The zero value starts a new box of the default spec.
type StartOptions struct {
	// Spec is the ID of a spec. Default: that of Specs.Default.
	Spec string
	// ID is the box's id: a letter or digit, and up to 127 more letters, digits, "_", "." and "-".
	// Default: Start makes one.
	ID string
	// Owner is at most 128 bytes of printable text. The service only compares it. Anyone who can
	// ask the engine sees it.
	Owner string
	// Env is added to the box's environment, as "NAME=value". It may be secret: only the memory of
	// the box holds it. If a Start resumes a box whose programs have ended, the box gets the Env of
	// that Start.
	Env []string
	// Files are copied into the directory where sessions start, when the box is made. Default:
	// none.
	Files fs.FS
	// Metadata is kept with the box, for Info.Metadata and Query.Metadata: at most 64 names and
	// values of printable text, together at most 4 KiB. Anyone who can ask the engine sees it. If
	// Start resumes a box, the box keeps the Metadata it has.
	Metadata map[string]string
	// Egress are rules of what the box may reach, beside those of its spec: see Spec.Egress, which
	// must be set. They are at most 200, together at most 8 KiB. They are kept with the box, so
	// anyone who can ask the engine sees them. If Start resumes a box, the box keeps the rules it
	// has.
	Egress []string
	// Hosts narrow what the rules of Spec.Egress and Egress allow to these hosts: see
	// Service.SetHosts. Default: they do not. If Start resumes a box, the box keeps its Hosts.
	Hosts []string
	// Ends is when the service removes the box. The process that has set it does so at once, and if
	// that is gone, another within Config.Every. If Start resumes a box, an Ends that is not zero
	// replaces the box's. Default: no end. See SetEnd.
	Ends time.Time
	// PauseAtEnd pauses the box at its end, in place of removing it. The paused box has no end.
	// Pods cannot be paused: there the error is ErrInvalid. If Start resumes a box, the box keeps
	// the PauseAtEnd and the WakeFor it has.
	PauseAtEnd bool
	// WakeFor resumes the paused box when somebody uses it, as the Wake of the spec's Lifecycle
	// does, and makes its end that long after. Default: Lifecycle.Wake decides, and changes no end.
	WakeFor time.Duration
}

// check returns an error if a field is wrong, but for Spec and Egress. kind is the name of the
// options that the caller has given, and idField that of their field with the ID.
func (o *StartOptions) check(kind, idField string) error {
	switch {
	case !place.ValidID(o.ID):
		return invalidArgument(kind+"."+idField, "%q: write a letter or digit, and up to 127 more "+
			"letters, digits, \"_\", \".\" and \"-\"", o.ID)
	case len(o.Owner) > 128 || !utf8.ValidString(o.Owner) ||
		strings.ContainsFunc(o.Owner, func(r rune) bool { return !unicode.IsPrint(r) }):
		return invalidArgument(kind+".Owner", "%.200q: write printable text of at most 128 bytes",
			o.Owner)
	}
	if err := checkMetadata(kind+".Metadata", o.Metadata); err != nil {
		return err
	}
	if err := checkEnd(kind+".Ends", o.Ends); err != nil {
		return err
	}
	if err := remotebox.CheckEnv("entry", o.Env); err != nil {
		return invalidArgument(kind+".Env", "%v", err)
	}
	if o.WakeFor < 0 || time.Now().Add(o.WakeFor).After(latestEnd) {
		return invalidArgument(kind+".WakeFor", "%v: give at least 0, which means that the spec "+
			"decides, and at most 100 years", o.WakeFor)
	}
	return nil
}

// validate checks o, sets o.Spec if that is empty, and returns the spec.
func (s *Service) validate(ctx context.Context, o *StartOptions) (spec *Spec, err error) {
	if err := o.check("StartOptions", "ID"); err != nil {
		return nil, err
	}
	if o.Spec == "" {
		spec, err = s.store.Default(ctx)
		if errors.Is(err, ErrNotFound) || spec == nil && err == nil {
			return nil, invalidArgument("StartOptions.Spec", "it is empty, and there is no "+
				"default spec: name one")
		}
	} else {
		spec, err = s.spec(ctx, o.Spec)
		if errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w: %s", err, s.specsText(ctx))
		}
	}
	if err != nil {
		return nil, err
	}
	o.Spec = spec.ID
	if err := spec.Check(); err != nil {
		return nil, err
	}
	return spec, o.checkEgress(spec)
}

// specsText says which specs there are.
func (s *Service) specsText(ctx context.Context) string {
	const most = 10
	specs, next, err := s.store.Search(ctx, "", most)
	switch {
	case err != nil:
		return "list the specs: " + err.Error()
	case len(specs) == 0:
		return "there are none"
	}
	var ids []string
	for _, spec := range specs {
		ids = append(ids, spec.ID)
	}
	if next != "" {
		ids = append(ids, "…")
	}
	return "there are: " + strings.Join(ids, ", ")
}

// Start starts a box, or resumes the one that already has the id. The error is ErrConflict if that
// box has another spec or owner, or if the owner has too many boxes. It is ErrNotFound if there is
// no such spec. If several processes start one id at once, they get one box. If Start fails, or if
// ctx ends before Start returns, it leaves no box that did not exist before.
func (s *Service) Start(ctx context.Context, o StartOptions) (info *Info, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	isNew := o.ID == ""
	if isNew {
		o.ID = strings.ToLower(rand.Text())
	}
	spec, err := s.validate(ctx, &o)
	if err != nil {
		return nil, err
	}
	leave, err := s.turns.take(ctx, o.ID)
	if err != nil {
		return nil, fmt.Errorf("start box %q: %w", o.ID, err)
	}
	defer leave()
	r, err := s.startInTurn(ctx, spec, o, isNew)
	if err != nil {
		return nil, fmt.Errorf("start box %q: %w", o.ID, err)
	}
	return s.info(ctx, r)
}

// startInTurn resumes the box of o.ID, or makes it if there is none. isNew says that no box has the
// ID. The caller has the turn of the ID.
func (s *Service) startInTurn(ctx context.Context, spec *Spec, o StartOptions,
	isNew bool) (*place.Record, error) {
	for attempt := 1; ; attempt++ {
		if !isNew {
			r, err := s.resumeExisting(ctx, o)
			if !errors.Is(err, ErrNotFound) {
				return r, err
			}
		}
		if err := s.checkQuota(ctx, spec, o, 1, ""); err != nil {
			return nil, err
		}
		r, err := s.makeBox(ctx, spec, o)
		if err == nil {
			return s.admit(ctx, spec, o, r)
		}
		if !errors.Is(err, ErrConflict) || attempt == maxAttempts {
			return nil, err
		}
		// Another process has just taken the ID, or is still removing the box that had it.
		isNew = false
		if err := sleep(ctx, poll); err != nil {
			return nil, err
		}
	}
}

// maxAttempts is how often startInTurn tries to make a box whose ID is taken, though no box has it.
const maxAttempts = 25

// resumeExisting resumes the box of o.ID. The error is ErrNotFound if there is none, and
// ErrConflict if the box has another owner or spec.
func (s *Service) resumeExisting(ctx context.Context, o StartOptions) (*place.Record, error) {
	r, err := s.waitSettled(ctx, o.ID)
	switch {
	case err != nil:
		return nil, err
	case r.Note.Owner != o.Owner: // first: another owner learns nothing else about the box
		return nil, fmt.Errorf("%w: the id is taken: take another", ErrConflict)
	case r.Spec != o.Spec:
		return nil, fmt.Errorf("%w: there is a box of that id, of the spec %q: Delete it first, "+
			"or take another id", ErrConflict, r.Spec)
	}
	if !o.Ends.IsZero() && !o.Ends.Equal(r.Note.Ends) {
		if err := s.setEnd(ctx, r, o.Ends); err != nil {
			return nil, err
		}
	}
	restarts := r.Ended && r.Note.Checkpoint == ""
	if err := s.resume(ctx, r); err != nil {
		return nil, err
	}
	if restarts && len(o.Env) > 0 {
		c, err := s.connect(ctx, r)
		if err == nil {
			_, err = remotebox.HandOver(ctx, c, o.Env, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.find(ctx, o.ID)
}
