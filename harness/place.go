package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
)

// What some places can do beside making boxes.
type (
	imageBuilder interface {
		BuildImage(ctx context.Context, dir, dockerfile string, log io.Writer) (string, error)
	}
	imageIdentifier interface {
		ImageID(ctx context.Context, name string) (string, error)
	}
	limitChecker interface { // it asks the place's engine, as Check does not
		CheckLimits(ctx context.Context, s sandbox.Spec) error
	}
	labelRemover interface {
		RemoveLabelled(ctx context.Context, name, value string) error
	}
	snapshotter interface {
		Snapshot(ctx context.Context, box sandbox.Sandbox) (id string, err error)
		NewFrom(ctx context.Context, snapshot string, s sandbox.Spec) (sandbox.Sandbox, error)
		RemoveSnapshot(ctx context.Context, id string) error
	}
)

// honours reports whether a place can honour the one field that is set in s.
func honours(p sandbox.Place, s sandbox.Spec) bool {
	return !errors.Is(sandbox.CheckSpec(p, s), errors.ErrUnsupported)
}

// unheld says why a place cannot hold limits: an error for each that it cannot hold.
type unheld struct{ memory, pids, cpus error }

// unheldBy returns the limits that a place cannot hold, as far as it can tell before it makes a
// box.
func unheldBy(ctx context.Context, p sandbox.Place) (u unheld) {
	engine, asks := p.(limitChecker)
	for why, s := range map[*error]sandbox.Spec{
		&u.memory: {Memory: DefaultLimits.Memory},
		&u.pids:   {PIDs: DefaultLimits.PIDs},
		&u.cpus:   {CPUs: DefaultLimits.CPUs},
	} {
		err := sandbox.CheckSpec(p, s)
		if asks && !errors.Is(err, errors.ErrUnsupported) {
			err = engine.CheckLimits(ctx, s)
			asks = err == nil || errors.Is(err, errors.ErrUnsupported) // else nothing answers
		}
		if errors.Is(err, errors.ErrUnsupported) {
			*why = err
		}
	}
	return u
}

// check returns an error if l has a limit that the place cannot hold.
func (u unheld) check(l Limits) error {
	switch {
	case l.Memory > 0 && u.memory != nil:
		return u.memory
	case l.PIDs > 0 && u.pids != nil:
		return u.pids
	case l.CPUs > 0:
		return u.cpus
	}
	return nil
}

// supportedDefaults returns DefaultLimits without the limits that a place cannot honour.
func supportedDefaults(p sandbox.Place, u unheld) Limits {
	l := DefaultLimits
	if u.memory != nil {
		l.Memory = 0
	}
	if u.pids != nil {
		l.PIDs = 0
	}
	if u.cpus != nil {
		l.CPUs = 0
	}
	if !honours(p, sandbox.Spec{Network: sandbox.Network(l.Network)}) {
		l.Network = ""
	}
	return l
}

// checkPlace returns an error if a place cannot make the box of a task.
func checkPlace(p sandbox.Place, u unheld, t *Task) error {
	if t.Build != nil {
		if _, ok := p.(imageBuilder); !ok {
			return fieldError("build", "%s builds no images: name an image", p)
		}
	} else if t.Image == "" && honours(p, sandbox.Spec{Image: "image"}) {
		return fieldError("image", "it is missing: name an image, or a directory with a Dockerfile")
	}
	err := sandbox.CheckSpec(p, t.spec(t.Image))
	if err == nil {
		err = u.check(t.Limits)
	}
	if err != nil {
		err = taskError{err}
	}
	return err
}

// spec returns what the task says of its box, with the image that it has or that was built.
func (t *Task) spec(image string) sandbox.Spec {
	return sandbox.Spec{Image: image, User: t.User, Env: t.Env, Memory: t.Limits.Memory,
		CPUs: t.Limits.CPUs, PIDs: t.Limits.PIDs, Network: sandbox.Network(t.Limits.Network)}
}

// A taskError is an error of making a box. Its text names the fields of a Task where that of err
// names those of a Spec.
type taskError struct{ err error }

var taskFields = strings.NewReplacer("Spec.Image:", "Task.Image:", "Spec.User:", "Task.User:",
	"Spec.Env", "Task.Env", "Spec.Memory:", "Task.Limits.Memory:", "Spec.CPUs:",
	"Task.Limits.CPUs:", "Spec.PIDs:", "Task.Limits.PIDs:", "Spec.Network:", "Task.Limits.Network:")

func (e taskError) Error() string { return taskFields.Replace(e.err.Error()) }
func (e taskError) Unwrap() error { return e.err }

// The labels of a box, where the place has labels.
const (
	runLabel  = "harness.run"  // results.id
	taskLabel = "harness.task" // Task.ID, as labelValue returns it
)

// labelValue returns an ID as a label's value, which Kubernetes accepts too.
func labelValue(id string) string {
	id = strings.ReplaceAll(id, "/", "_")
	return strings.Trim(id[:min(len(id), 63)], "._-")
}

// newBox makes a box for a sample, of a snapshot if one is named. What the engine says while it
// builds the image goes to its log.
func (r *runner) newBox(ctx context.Context, a *aheadTask, snapshot string) (sandbox.Sandbox,
	error) {
	t := &a.task
	image, err := r.image(ctx, t, a.log)
	if err != nil {
		return nil, err
	}
	s := t.spec(image)
	labels := map[string]string{runLabel: r.results.id, taskLabel: labelValue(t.ID)}
	if honours(r.cfg.Place, sandbox.Spec{Labels: labels}) {
		s.Labels = labels
	}
	var box sandbox.Sandbox
	err = guard.Call("Config.Place", func() (err error) {
		if snapshot == "" {
			box, err = r.cfg.Place.New(ctx, s)
		} else {
			box, err = a.setup.place.NewFrom(ctx, snapshot, s)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, taskError{err}
	case box == nil:
		return nil, errors.New("Config.Place: New returned neither a box nor an error")
	}
	return r.withEgress(ctx, t, box, a.egress)
}

// image returns the image of a task's box, and builds it if it does not exist. One image is built
// at a time, so that tasks that share an image build it once.
func (r *runner) image(ctx context.Context, t *Task, log io.Writer) (string, error) {
	if t.Build == nil {
		return t.Image, nil
	}
	select {
	case <-ctx.Done():
		return "", ctxerr.Of(ctx)
	case r.building <- struct{}{}:
	}
	defer func() { <-r.building }()
	builder, ok := r.cfg.Place.(imageBuilder)
	if !ok { // checkPlace has looked
		return "", fmt.Errorf("%s builds no images", r.cfg.Place)
	}
	return builder.BuildImage(ctx, t.Build.Dir, t.Build.Dockerfile, log)
}

// removeLeftOver removes the boxes of an earlier run with this directory, if the place has labels.
// The directory is locked, so no other process uses them.
func (r *runner) removeLeftOver(ctx context.Context) error {
	if p, ok := r.cfg.Place.(labelRemover); ok {
		return p.RemoveLabelled(ctx, runLabel, r.results.id)
	}
	return nil
}
