package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sandshell/sandshell/internal/ctxerr"
)

// differencesMax is how many differences the log shows.
const differencesMax = 20

// runReference runs the reference solution in a box of its own, and lists what it leaves.
// Check.Like compares with that list, also in later attempts.
func (t *trial) runReference(ctx context.Context) *verdict {
	if t.ahead.want != nil {
		t.times.Reference = t.ahead.wantSeconds
		return nil
	}
	stop := timed(&t.times.Reference)
	defer func() { stop(); t.ahead.wantSeconds = t.times.Reference }()
	var parts [2]float64 // not used: Times.Reference is the sum
	w, failed := t.newWorkspace(ctx, &parts[0], &parts[1])
	if failed != nil {
		return failed
	}
	defer t.close(w)
	t.say("the reference solution, in a box of its own")
	limit := t.task.Limits.Time
	ctx, cancel := ctxerr.WithLimit(ctx, limit, tooLong(limit))
	defer cancel()
	// The exit status does not matter: some of nl2bash's gold commands are a grep that finds
	// nothing.
	_, err := w.script(ctx, t.task.Solution, t.log)
	key := newKey()
	var list map[string]string
	if err == nil {
		list, err = w.list(ctx, t.task.Check, key)
	}
	if err == nil {
		t.ahead.want, t.ahead.key = list, key
		return nil
	}
	v, ok := ofBox(err)
	if !ok || v.Status != Lost {
		v = verdictOf(Error, "the reference solution: %v", err)
	}
	return &v
}

// check runs the check. oom reports whether the kernel killed a process meanwhile because memory
// was used up. If the check has a fresh box, *w is that box afterwards.
func (t *trial) check(ctx context.Context, w **workspace) (v verdict, oom bool) {
	defer timed(&t.times.Check)()
	t.say("check")
	limit := t.task.Check.Time
	bounded, cancel := ctxerr.WithLimit(ctx, limit,
		fmt.Errorf("it had not ended after %s", durationText(limit)))
	defer cancel()
	if len(t.task.Check.Fresh) > 0 {
		if failed := t.freshen(ctx, bounded, w); failed != nil {
			return *failed, false
		}
	}
	oom, err := t.judge(bounded, *w)
	switch judged, ok := ofBox(err); {
	case err == nil:
		return verdict{Pass, ""}, false
	case ok:
		return judged, oom
	case t.waits:
		const waited = "the agent ended while a command waited for an answer; check: %v"
		return verdictOf(Stuck, waited, err), oom
	}
	return verdictOf(Fail, "check: %v", err), oom
}

// judge returns an error if what the agent has left in w is wrong.
func (t *trial) judge(ctx context.Context, w *workspace) (oom bool, err error) {
	if t.task.Check.Command != "" {
		e, err := w.forCheck(&t.task).script(ctx, t.task.Check.Script, t.log)
		if err == nil {
			err = e.err()
		}
		if err != nil {
			return e.oom, err
		}
		oom = e.oom
	}
	if len(t.task.Check.Like) == 0 {
		return oom, nil
	}
	got, err := w.list(ctx, t.task.Check, t.ahead.key)
	if err != nil {
		return oom, err
	}
	return oom, t.compare(t.ahead.want, got)
}

// freshen replaces the agent's box, *w, by a fresh box that has the agent's work in it. bounded has
// the time of the check. Making the box does not count as time of the check.
func (t *trial) freshen(ctx, bounded context.Context, w **workspace) *verdict {
	fail := func(err error) *verdict {
		v, ok := ofBox(err)
		if !ok {
			v = verdictOf(Fail, "check: %v", err)
		}
		return &v
	}
	dir, err := os.MkdirTemp(filepath.Join(t.run.cfg.Dir, t.ahead.dir), "work-")
	if err != nil {
		v := verdictOf(Error, "check: %v", err)
		return &v
	}
	defer os.RemoveAll(dir)
	work := map[string]string{} // by the path in the box
	for i, name := range t.task.Check.Fresh {
		to := filepath.Join(dir, strconv.Itoa(i))
		err := (*w).CopyFrom(bounded, (*w).abs(name), to)
		switch {
		case err == nil:
			work[name] = to
		case !errors.Is(err, fs.ErrNotExist):
			return fail(err)
		}
	}
	t.close(*w) // so that a task never has two boxes
	var parts [2]float64
	fresh, failed := t.newWorkspace(ctx, &parts[0], &parts[1])
	if failed != nil {
		return failed
	}
	*w = fresh
	t.say("the check runs in a fresh box")
	for _, name := range t.task.Check.Fresh {
		to := fresh.abs(name)
		err := fresh.Files().RemoveAll(bounded, to)
		if err == nil && work[name] != "" {
			if err = fresh.Files().MkdirAll(bounded, path.Dir(to), 0o755); err == nil {
				err = fresh.CopyTo(bounded, work[name], to)
			}
		}
		if err != nil {
			return fail(err)
		}
	}
	return nil
}

// compare returns an error if two listings differ, and logs the differences.
func (t *trial) compare(want, got map[string]string) error {
	differences := 0
	tell := func(lines, others map[string]string, what string) {
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			if is, there := others[name]; there && is == lines[name] {
				continue
			}
			if differences++; differences <= differencesMax {
				t.say("%s: %q %s", what, name, lines[name])
			}
		}
	}
	tell(want, got, "the reference solution leaves")
	tell(got, want, "there is instead")
	if differences > 0 {
		return errors.New("the files are not as the reference solution leaves them: see the log")
	}
	return nil
}
