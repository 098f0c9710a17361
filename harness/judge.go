package harness

import (
	"cmp"
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

// check runs the check. oom reports whether the kernel killed a process during the check because
// memory was used up. If the check has a fresh box, check closes *w and sets it to the fresh box.
func (t *attempt) check(ctx context.Context, w **workspace) (v verdict, oom bool) {
	defer timed(&t.times.Check)()
	t.logf("check")
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
	switch judged, ok := verdictOfBox(err); {
	case err == nil:
		return verdict{Pass, ""}, false
	case ok:
		return judged, oom
	case t.waits:
		return verdictOf(Stuck, "the agent ended while a command waited for an answer; check: %v",
			err), oom
	}
	return verdictOf(Fail, "check: %v", err), oom
}

// judge returns an error if the check finds the agent's work in w wrong.
func (t *attempt) judge(ctx context.Context, w *workspace) (oom bool, err error) {
	if t.task.Check.Command != "" {
		var e scriptResult
		err := w.removePoints(ctx, t.task.Check)
		if err == nil {
			e, err = w.forCheck(&t.task).script(ctx, t.task.Check.Script, t.log)
		}
		if err == nil {
			few := t.takePoints(ctx, w, e.lastLine) // also if the exit status is not 0
			err = cmp.Or(e.err(), few)
		}
		if err != nil {
			return e.oom, err
		}
		oom = e.oom
	}
	if len(t.task.Check.Like) == 0 {
		return oom, nil
	}
	got, err := w.list(ctx, t.task.Check, t.ahead.reference.Key)
	if err != nil {
		return oom, err
	}
	return oom, t.compare(t.ahead.reference.Files, got)
}

// giveNumbers gives the attempt's numbers to a result.
func (t *attempt) giveNumbers(r *Result) {
	r.Files, r.Scores, r.Counts = t.collected, nil, nil
	if t.trial != nil {
		r.Scores, r.Counts = t.trial.Scores(), t.trial.Counts()
	}
	r.Counts = t.ahead.egress.count(r.Counts)
	if len(t.points) > 0 && r.Scores == nil {
		r.Scores = map[string]float64{}
	}
	maps.Copy(r.Scores, t.points)
}

// takePoints takes the points that the check's script has left. It returns an error if they are not
// enough, or if there are none.
func (t *attempt) takePoints(ctx context.Context, w *workspace, lastLine string) error {
	c := t.task.Check
	if len(c.Points) == 0 {
		return nil
	}
	var err error
	if t.points, err = w.points(ctx, c, lastLine); err != nil {
		return err
	}
	if points, least := t.points[PointsScore], cmp.Or(c.Pass, 1); points < least {
		return fmt.Errorf("%.4g points: a pass takes %.4g", points, least)
	}
	return nil
}

// freshen closes the agent's box, *w, and sets *w to a fresh box that has the agent's work in it.
// bounded ends when the time of the check is over. The time of making the box does not count.
func (t *attempt) freshen(ctx, bounded context.Context, w **workspace) *verdict {
	fail := func(err error) *verdict {
		v, ok := verdictOfBox(err)
		if !ok {
			v = verdictOf(Fail, "check: %v", err)
		}
		return &v
	}
	dir, err := os.MkdirTemp(filepath.Join(t.run.cfg.Dir, t.ahead.dir), "work-")
	if err != nil {
		v := verdictOf(Lost, "check: %v", err)
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
	t.close(*w) // before the fresh box is made: a task never has two boxes
	var parts [2]float64
	fresh, failed := t.newWorkspace(ctx, &parts[0], &parts[1])
	if failed != nil {
		return failed
	}
	*w = fresh
	t.logf("the check runs in a fresh box")
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
func (t *attempt) compare(want, got map[string]string) error {
	differences := 0
	tell := func(lines, others map[string]string, what string) {
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			if other, ok := others[name]; ok && other == lines[name] {
				continue
			}
			if differences++; differences <= differencesMax {
				t.logf("%s: %q %s", what, name, lines[name])
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
