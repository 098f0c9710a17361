package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
)

// The samples of a task begin with the same files and setup. So the first of them that comes so far
// makes a snapshot of its box, and the others begin with boxes of that. So do their retries and the
// reference solution.

// A sharedSetup is what the samples of a task share. A nil sharedSetup is for samples that share
// nothing.
type sharedSetup struct {
	place snapshotter
	turn  chan struct{} // holds a token while a sample sets its box up for all

	mu       sync.Mutex
	snapshot string   // "" means none yet
	former   []string // that could not be used
	each     bool     // each sample runs the setup
	why      string   // why each does, if no sample's log says it yet
	prepared bool     // a box of the task's image was made ahead
	left     int      // samples that have not ended
}

// shareSetups finds out which tasks have a setup that saves time if samples share it. left has the
// task of each sample that has no result.
func (r *runner) shareSetups(left []Task) {
	r.setups = map[string]*sharedSetup{}
	place, can := r.cfg.Place.(snapshotter)
	for _, t := range left {
		if t.Setup == "" {
			continue
		}
		s := r.setups[t.ID]
		if s == nil {
			s = &sharedSetup{place: place, turn: make(chan struct{}, 1)}
			r.setups[t.ID] = s
		}
		s.left++
	}
	for id, s := range r.setups {
		switch {
		case s.left == 1:
			delete(r.setups, id)
		case !can:
			s.each, s.why = true, fmt.Sprintf("%s makes no snapshots", r.cfg.Place)
		}
	}
}

// ahead returns what the first box of a sample is made of: a snapshot, or the task's image if that
// is "". If may is false, that is not known yet.
func (s *sharedSetup) ahead() (snapshot string, may bool) {
	if s == nil {
		return "", true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot == "" && !s.each && s.prepared {
		return "", false
	}
	s.prepared = true
	return s.snapshot, true
}

// begin returns the snapshot that a box is made of, after the sample that makes it. If lead is
// true, there is none: the caller makes it, and calls finish.
func (s *sharedSetup) begin(ctx context.Context) (snapshot string, lead bool, err error) {
	if s == nil {
		return "", false, nil
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", false, ctxerr.Of(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot == "" && !s.each {
		return "", true, nil
	}
	<-s.turn
	return s.snapshot, false, nil
}

// finish ends the caller's lead. snapshot is "" if it has made none.
func (s *sharedSetup) finish(snapshot string) {
	s.mu.Lock()
	s.snapshot = snapshot
	s.mu.Unlock()
	<-s.turn
}

// reason returns why each sample runs the setup, at its first call.
func (s *sharedSetup) reason() (why string) {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	why, s.why = s.why, ""
	return why
}

// runEach says that no snapshot can be made.
func (s *sharedSetup) runEach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each = true
}

// forget says that no box could be made of a snapshot.
func (s *sharedSetup) forget(snapshot string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost *sandbox.IncompleteError
	s.each = s.each || errors.As(err, &lost)
	if s.snapshot == snapshot {
		s.snapshot = ""
		s.former = append(s.former, snapshot)
	}
}

// sampleEnded says that a sample needs no further boxes. After the last one it removes the
// snapshot.
func (s *sharedSetup) sampleEnded() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.left--
	last := s.left == 0
	s.mu.Unlock()
	if !last {
		return nil
	}
	return s.remove()
}

// removeSnapshotLimit bounds the removal of a snapshot.
const removeSnapshotLimit = time.Minute

// remove removes the snapshot, which no box uses.
func (s *sharedSetup) remove() error {
	s.mu.Lock()
	ids := slices.Clone(s.former)
	if s.snapshot != "" {
		ids = append(ids, s.snapshot)
	}
	s.snapshot, s.former = "", nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), removeSnapshotLimit)
	defer cancel()
	var errs []error
	for _, id := range ids {
		errs = append(errs, guard.Call("Config.Place", func() error {
			return s.place.RemoveSnapshot(ctx, id)
		}))
	}
	return errors.Join(errs...)
}

// snapshot makes a snapshot of a box that has been set up. It returns "" if that is not possible,
// and the log says why.
func (t *attempt) snapshot(ctx context.Context, box sandbox.Sandbox) (id string) {
	shared := t.ahead.setup
	err := guard.Call("Config.Place", func() (err error) {
		id, err = shared.place.Snapshot(ctx, box)
		return err
	})
	switch {
	case err == nil:
		t.logf("the other samples begin with a snapshot of this")
	case ctx.Err() == nil:
		t.logf("each sample runs the setup, because a snapshot is not possible: %v", err)
		shared.runEach()
	}
	return id
}
