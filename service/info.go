package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/service/place"
)

// A Status says what a box is doing. See place.Status for the Status of each of Docker's states.
type Status = place.Status

// The statuses of a box. A box that a process has not finished starting is Starting, whatever its
// container does.
const (
	Starting = place.Starting
	Running  = place.Running
	Paused   = place.Paused // or its programs have ended: Resume starts it again, with its files
	Error    = place.Error
	Unknown  = place.Unknown // the engine cannot say
	Missing  = place.Missing // known to be gone
)

var statuses = []Status{Starting, Running, Paused, Error, Unknown, Missing}

// Kept says what the last Resume of a box brought back, or what a copy got of its box.
type Kept = place.Kept

// These say what a Resume brings back.
const (
	KeptNothing = place.KeptNothing // the box was never resumed
	KeptAll     = place.KeptAll     // its files, shells, variables and programs
	KeptShells  = place.KeptShells  // its files, shells and variables: Fork has made it
	KeptFiles   = place.KeptFiles   // its files; its programs had ended
)

// An Info describes a box at one moment. The caller may change it.
type Info struct {
	ID      string
	Owner   string
	Spec    string // the Spec's ID
	Status  Status
	Detail  string // why the box has that status, for people; may be empty
	Dir     string // where its sessions start; empty while the box starts
	Created time.Time

	URLs       []URL  // only while Running, and if Config.URL is set
	SessionKey string // only while Running
	// Published maps each port of the spec's Config.Publish to the port of 127.0.0.1 on the
	// engine's machine. The ports change when the box's programs are started again.
	Published map[int]int
	Use       *Use // nil unless Query.Use was set
	Kept      Kept // what the last Resume, or the Fork that has made the box, brought back

	Metadata map[string]string // StartOptions.Metadata
	// Egress are the rules of what the box may reach, as Hosts narrow them; nil if its spec has no
	// Egress. See Service.Egress for what was refused.
	Egress []string
	// Hosts are those of StartOptions or of SetHosts; nil if they narrow nothing.
	Hosts []string
	// Pauses is when the spec's Lifecycle pauses the box, if nothing uses the box from now on. It
	// is zero if the box does not run, or is not paused. If other processes use the box too, it may
	// be later.
	Pauses time.Time
	// Ends is when the box is removed: because of StartOptions.Ends, or of the spec's Lifecycle if
	// the box does not run. If PauseAtEnd is set, it is paused at the former. It is zero if that is
	// not planned.
	Ends       time.Time
	PauseAtEnd bool          // StartOptions.PauseAtEnd
	WakeFor    time.Duration // StartOptions.WakeFor
}

// A URL is the address of a port of a box.
type URL struct {
	Name string // the Port's
	URL  string
	Port int // the Port's number in the box
}

// A Use is what a box uses of its machine: processor time, memory, processes and disk.
type Use = place.Use

// atOnce is how many boxes infos asks at the same time.
const atOnce = 32

// infos returns the Infos of boxes. The Info of a nil Record is nil. use fills in Info.Use.
func (s *Service) infos(ctx context.Context, records []*place.Record, use bool) ([]*Info, error) {
	infos := make([]*Info, len(records))
	errs := make([]error, len(records))
	free := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, r := range records {
		if r == nil {
			continue
		}
		if !use && s.connectionTo(r) == nil {
			infos[i], errs[i] = s.info(ctx, r)
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			errs[i] = guard.Call("the Place", func() (err error) {
				infos[i], err = s.info(ctx, r)
				if err == nil && use && r.Note != nil &&
					(r.Status == Running || r.Status == Paused && !r.Ended) {
					infos[i].Use, err = s.place.Usage(ctx, r.Handle)
					if errors.Is(err, ErrNotFound) {
						err = nil
					}
				}
				return err
			})
		})
	}
	all.Wait()
	return infos, errors.Join(errs...)
}

// info returns the Info of a box.
func (s *Service) info(ctx context.Context, r *place.Record) (*Info, error) {
	i := &Info{ID: r.ID, Spec: r.Spec, Status: r.Status, Detail: r.Detail, Created: r.Created}
	if r.Note == nil {
		return i, nil
	}
	i.Owner, i.Dir, i.Kept = r.Note.Owner, r.Note.Dir, r.Note.Kept
	i.Metadata, i.Ends = maps.Clone(r.Note.Metadata), r.Note.Ends
	i.PauseAtEnd, i.WakeFor = r.Note.PauseAtEnd, r.Note.WakeFor
	i.Egress, i.Hosts = rulesOf(r), slices.Clone(r.Note.Hosts)
	if r.Note.Checkpoint != "" && r.Ended {
		i.Detail = "it is suspended: its memory is on disk"
	}
	spec, err := s.specOf(ctx, r)
	if err != nil {
		return nil, err
	}
	if spec != nil {
		i.Pauses = spec.Lifecycle.pauses(r, s.lastUse(r, time.Now()))
		i.Ends = earlier(i.Ends, spec.Lifecycle.deletes(r))
	}
	if r.Status != Running {
		return i, nil
	}
	if spec != nil {
		if i.Status, i.Detail = s.health(ctx, r, spec); i.Status != Running {
			return i, nil
		}
		for _, p := range spec.Ports {
			if s.url != nil {
				at := URL{Name: p.Name, Port: p.Port}
				err := guard.Call("Config.URL", func() error {
					at.URL = s.url(r.ID, p)
					return nil
				})
				if err != nil {
					return nil, err
				}
				i.URLs = append(i.URLs, at)
			}
		}
	}
	i.SessionKey, i.Published = s.key(r), r.Published
	return i, nil
}

// Usage returns what a box uses. It takes the engine a second or two. The error is ErrNotFound if
// there is no such box, and ErrConflict if its programs have ended.
func (s *Service) Usage(ctx context.Context, id string) (_ *Use, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	r, err := s.find(ctx, id)
	if err == nil && r.Ended {
		err = fmt.Errorf("%w: it is %s: Resume it first", ErrConflict, r.Status)
	}
	var use *Use
	if err == nil {
		use, err = s.place.Usage(ctx, r.Handle)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the usage of box %q: %w", id, err)
	}
	return use, nil
}
