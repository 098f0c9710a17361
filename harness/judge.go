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

// reference finds out, in a box of its own, what Check.Like is compared with. Later attempts
// compare with the same.
func (t *trial) reference(ctx context.Context) *verdict {
	if t.want != nil {
		t.times.Reference = t.wantSeconds
		return nil
	}
	stop := timed(&t.times.Reference)
	defer func() { stop(); t.wantSeconds = t.times.Reference }()
	var parts [2]float64 // of the reference, as a whole
	p, failed := t.place(ctx, &parts[0], &parts[1])
	if failed != nil {
		return failed
	}
	defer t.close(p)
	t.say("the reference solution, in a box of its own")
	limit := t.task.Limits.Time
	ctx, cancel := ctxerr.WithLimit(ctx, limit, tooLong(limit))
	defer cancel()
	// Some of nl2bash's gold commands have an exit status other than 0: grep that finds nothing.
	_, err := p.script(ctx, t.task.Solution, t.log)
	key := newKey()
	var list map[string]string
	if err == nil {
		list, err = p.list(ctx, t.task.Check, key)
	}
	if err == nil {
		t.want, t.key = list, key
		return nil
	}
	v, ok := ofBox(err)
	if !ok || v.Status != Lost {
		v = verdictOf(Error, "the reference solution: %v", err)
	}
	return &v
}

// check runs the check. oom says whether the kernel killed for memory meanwhile. Where the check
// has a fresh box, that is *p afterwards.
func (t *trial) check(ctx context.Context, p **place) (v verdict, oom bool) {
	defer timed(&t.times.Check)()
	t.say("check")
	limit := t.task.Check.Time
	bounded, cancel := ctxerr.WithLimit(ctx, limit,
		fmt.Errorf("it had not ended after %s", durationText(limit)))
	defer cancel()
	if len(t.task.Check.Fresh) > 0 {
		if failed := t.freshen(ctx, bounded, p); failed != nil {
			return *failed, false
		}
	}
	oom, err := t.judge(bounded, *p)
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

// judge returns what is wrong with what the agent has left at p.
func (t *trial) judge(ctx context.Context, p *place) (oom bool, err error) {
	if t.task.Check.Command != "" {
		e, err := p.checked(&t.task).script(ctx, t.task.Check.Script, t.log)
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
	got, err := p.list(ctx, t.task.Check, t.key)
	if err != nil {
		return oom, err
	}
	return oom, t.compare(t.want, got)
}

// freshen puts a fresh box into the place of the agent's, with the agent's work in it. To make the
// box takes none of the check's time, which bounded has.
func (t *trial) freshen(ctx, bounded context.Context, p **place) *verdict {
	fail := func(err error) *verdict {
		v, ok := ofBox(err)
		if !ok {
			v = verdictOf(Fail, "check: %v", err)
		}
		return &v
	}
	dir, err := os.MkdirTemp(filepath.Join(t.runner.Dir, t.start.dir), "work-")
	if err != nil {
		v := verdictOf(Error, "check: %v", err)
		return &v
	}
	defer os.RemoveAll(dir)
	work := map[string]string{} // by the path in the box
	for i, name := range t.task.Check.Fresh {
		to := filepath.Join(dir, strconv.Itoa(i))
		err := (*p).CopyFrom(bounded, (*p).abs(name), to)
		switch {
		case err == nil:
			work[name] = to
		case !errors.Is(err, fs.ErrNotExist):
			return fail(err)
		}
	}
	t.close(*p) // so that a task never has two
	var parts [2]float64
	fresh, failed := t.place(ctx, &parts[0], &parts[1])
	if failed != nil {
		return failed
	}
	*p = fresh
	t.say("the check's box is a fresh one")
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

// compare compares two listings.
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
