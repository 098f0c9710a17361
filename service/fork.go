package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// ForkOptions say what the copies of a box are. The zero value makes copies with new ids that are
// otherwise as the box is.
type ForkOptions struct {
	// IDs are the ids of the copies, one for each: see StartOptions.ID. No box may have one yet.
	// Default: Fork makes them.
	IDs []string
	// Owner is the owner of the copies. Default: that of the box.
	Owner string
	// Env is added to the copies' environment, as StartOptions.Env is: in the main session, and in
	// what is started later. Other sessions keep their variables.
	Env []string
	// Metadata is kept with the copies: see StartOptions.Metadata. Default: that of the box.
	Metadata map[string]string
	// Ends is when the service removes or pauses the copies: see StartOptions.Ends. They have the
	// box's PauseAtEnd and WakeFor. Default: no end.
	Ends time.Time
	// Accept are the kinds of what the copies may lack. Default: none.
	Accept sandbox.LossKind
}

// MaxForks is how many copies a Fork may make.
const MaxForks = 100

// Fork makes n copies of a box, at most MaxForks, and returns their Infos. Either all copies are
// made or none. A copy is a box of its own, with its own id and session key, of the same spec, of
// which it counts for MaxPerOwner and MaxRunning. It has the box's files, and the box's sessions
// under their ids, with their directories, variables, functions, and so on: see [sandbox.Like].
// Info.Kept is KeptShells, or KeptAll where gVisor runs the box and can copy what runs too: see
// [sshbox.DockerSSHBox.Snapshot]. It is otherwise made as the spec says now, and has the box's
// rules of Egress, its Hosts and a way out of its own. The box goes on as before. Its calls that
// change it wait until the copies are made.
//
// What a copy would lack, such as running programs, makes Fork fail with a
// *sandbox.IncompleteError that lists it, unless Accept has its kind. Each session must be at its
// prompt, else the error is sandbox.ErrBusy.
//
// The error is ErrNotFound if there is no such box. It is ErrConflict if the box does not run (Fork
// resumes it if its spec's Lifecycle has Wake), if its spec is gone, if an id is taken, or if there
// would be too many boxes. It is errors.ErrUnsupported if the Place cannot copy boxes, as pods, or
// cannot copy this one, as with gVisor unless it was started with --overlay2=none.
//
// On a Docker engine the copies share an image, which goes with the last of them. It holds the
// values of all variables of the sessions, those of StartOptions.Env among them, in a file that
// only root of the engine's machine can read. If this process is killed during the call, another
// one removes the copies that are not whole.
func (s *Service) Fork(ctx context.Context, id string, n int, o ForkOptions) (_ []*Info,
	err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	if o.IDs, err = o.check(id, n); err != nil {
		return nil, err
	}
	records, err := s.fork(ctx, id, o)
	if err != nil {
		return nil, fmt.Errorf("fork box %q: %w", id, err)
	}
	return s.infos(ctx, records, false)
}

// check returns the IDs of the copies.
func (o *ForkOptions) check(id string, n int) (ids []string, err error) {
	if n < 1 || n > MaxForks {
		return nil, invalidArgument("n", "%d copies: ask for 1 to %d", n, MaxForks)
	}
	if ids = slices.Clone(o.IDs); len(ids) == 0 {
		for range n {
			ids = append(ids, strings.ToLower(rand.Text()))
		}
	}
	if len(ids) != n {
		return nil, invalidArgument("ForkOptions.IDs", "%d ids for %d copies: give one for each, "+
			"or none", len(ids), n)
	}
	seen := map[string]bool{id: true}
	for _, its := range ids {
		if err := o.start(its, "").check("ForkOptions", "IDs"); err != nil {
			return nil, err
		}
		if seen[its] {
			return nil, invalidArgument("ForkOptions.IDs", "%q is the box's own, or occurs "+
				"twice: give each copy an id of its own", its)
		}
		seen[its] = true
	}
	return ids, nil
}

// start returns the StartOptions of a copy.
func (o *ForkOptions) start(id, spec string) *StartOptions {
	return &StartOptions{ID: id, Spec: spec, Owner: o.Owner, Env: o.Env, Metadata: o.Metadata,
		Ends: o.Ends}
}

// fork makes the copies, of the IDs in o.
func (s *Service) fork(ctx context.Context, id string, o ForkOptions) ([]*place.Record, error) {
	leave, err := s.turns.takeAll(ctx, append([]string{id}, o.IDs...))
	if err != nil {
		return nil, err
	}
	defer leave()
	r, err := s.waitSettled(ctx, id)
	if err != nil {
		return nil, err
	}
	spec, err := s.specOf(ctx, r)
	if err == nil && spec == nil {
		err = fmt.Errorf("%w: its spec %q is gone", ErrConflict, r.Spec)
	}
	if err == nil {
		err = spec.Check()
	}
	if err == nil && hasExit(r) != (spec.Egress != nil) {
		err = fmt.Errorf("%w: the box was started when its spec %q had another kind of network: "+
			"see Spec.Egress", ErrConflict, r.Spec)
	}
	if err == nil {
		err = s.wake(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	defer s.Used(id)()
	if o.Owner == "" {
		o.Owner = r.Note.Owner
	}
	if o.Metadata == nil {
		o.Metadata = maps.Clone(r.Note.Metadata)
	}
	if err := s.checkForks(ctx, spec, o); err != nil {
		return nil, err
	}
	c, err := s.connect(ctx, r)
	if err != nil {
		return nil, err
	}
	created := time.Now().Round(0)
	requests := make([]place.Request, len(o.IDs))
	for i, its := range o.IDs {
		requests[i] = spec.request(its, created)
	}
	made, err := s.place.Fork(ctx, c.Attached, requests, o.Accept)
	if err != nil {
		return nil, err
	}
	return s.handOverForks(ctx, spec, o, made, place.Note{Created: created, Dir: r.Note.Dir,
		Egress: slices.Clone(r.Note.Egress), Hosts: slices.Clone(r.Note.Hosts),
		PauseAtEnd: r.Note.PauseAtEnd, WakeFor: r.Note.WakeFor})
}

// checkForks returns an error if there may not be so many copies, or not of these IDs. It pauses
// boxes so that the copies can run.
func (s *Service) checkForks(ctx context.Context, spec *Spec, o ForkOptions) error {
	n := len(o.IDs)
	if most := spec.Lifecycle.MaxRunning; most > 0 && n > most {
		return fmt.Errorf("%w: of the %d copies only %d could run, because of the spec's "+
			"Lifecycle.MaxRunning: ask for fewer", ErrConflict, n, most)
	}
	for _, id := range o.IDs {
		if _, err := s.waitSettled(ctx, id); !errors.Is(err, ErrNotFound) {
			if err == nil {
				err = fmt.Errorf("%w: the id %q is taken: take another", ErrConflict, id)
			}
			return err
		}
	}
	if err := s.checkQuota(ctx, spec, *o.start("", spec.ID), n, ""); err != nil {
		return err
	}
	return s.makeRoom(ctx, spec, n, "")
}

// handingOver is to how many copies handOverForks gives what they need at once.
const handingOver = 8

// handOverForks makes the new copies whole. If that fails for one, it removes them all.
func (s *Service) handOverForks(ctx context.Context, spec *Spec, o ForkOptions,
	made []place.Created, note place.Note) ([]*place.Record, error) {
	records, errs := make([]*place.Record, len(made)), make([]error, len(made))
	each := func(f func(i int) error) error {
		free := make(chan struct{}, handingOver)
		var all sync.WaitGroup
		for i := range made {
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				errs[i] = guard.Call("the Place", func() error { return f(i) })
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
	options := func(i int) StartOptions { return *o.start(o.IDs[i], spec.ID) }
	err := each(func(i int) (err error) {
		c, its := newConnection(made[i].Box, made[i].Handle), note
		its.Kept = cmp.Or(made[i].Kept, KeptShells)
		records[i], err = s.handOver(ctx, c, options(i), its)
		return err
	})
	if err == nil {
		err = each(func(i int) error {
			admitted, err := s.admit(ctx, spec, options(i), records[i])
			if err == nil {
				records[i] = admitted
			}
			return err
		})
	}
	if err == nil {
		return records, nil
	}
	removing := context.WithoutCancel(ctx)
	failed := each(func(i int) error {
		if records[i] == nil {
			return nil
		}
		return s.remove(removing, records[i])
	})
	return nil, errors.Join(err, failed)
}
