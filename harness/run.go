package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/docker/go-units"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// A Config says what Run does.
type Config struct {
	Tasks []Task
	Agent Agent
	// Name is the agent's name: a directory of results is one agent's.
	Name string
	// Dir is the directory of results, which Run makes. What an earlier run, however it ended, has
	// finished there is not run again.
	Dir string

	// Again names results that are dropped, so that their tasks are run again: statuses ("error"),
	// IDs of tasks, and Changed. Without Changed it is ErrChanged, before any task is run, if a
	// task or its image is not the one that has the result.
	Again []string

	// Parallel is how many tasks are run at once. Default: as many as this machine has processors.
	Parallel int
	// Ahead is how many boxes of the tasks that come next are made, and their images built, while
	// there is no room for those tasks: they begin at once when there is. Nothing runs in such a
	// box, and Memory and CPUs do not count it. Default: 1; negative: none.
	Ahead int
	// Memory and CPUs bound what the limits of the tasks that run at once come to, in bytes and
	// processors. Default: no bound.
	Memory int64
	CPUs   float64
	// Defaults are the limits of tasks that have none. Default: DefaultLimits.
	Defaults Limits
	// Retries is how often a task is tried again whose box is lost by the infrastructure. Default:
	// 2; negative: never.
	Retries int

	// Box is what the boxes have beside what their tasks say: capabilities, a runtime, name
	// servers, the engine.
	Box sshbox.Config
	// Progress gets how far it is: a bar if it is a terminal, else a line for each task that ends.
	// A Write that blocks holds up the run. One that fails or panics is the last; Run returns the
	// error in the end, beside the Summary. Default: nobody.
	Progress io.Writer
}

func (c Config) withDefaults() (Config, error) {
	if c.Parallel == 0 {
		c.Parallel = runtime.NumCPU()
	}
	if c.Ahead == 0 {
		c.Ahead = 1
	}
	c.Ahead = max(c.Ahead, 0)
	if c.Retries == 0 {
		c.Retries = 2
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	switch {
	case c.Agent == nil:
		return c, errors.New("Config.Agent: it is nil: give the agent that does the tasks")
	case c.Name == "":
		return c, errors.New("Config.Name: it is empty: name the agent, for its results")
	case c.Dir == "":
		return c, errors.New("Config.Dir: it is empty: name a directory for the results")
	case len(c.Tasks) == 0:
		return c, errors.New("Config.Tasks: there are none: Read and its like return some")
	case c.Parallel < 0:
		return c, fmt.Errorf("Config.Parallel: %d is negative; 0 means the number of processors",
			c.Parallel)
	case c.Memory < 0:
		return c, fmt.Errorf("Config.Memory: %d is negative; 0 means no bound", c.Memory)
	case c.CPUs < 0:
		return c, fmt.Errorf("Config.CPUs: %v is negative; 0 means no bound", c.CPUs)
	}
	limits := c.Defaults.or(DefaultLimits)
	tasks := make([]Task, len(c.Tasks))
	for i, t := range c.Tasks {
		t.Limits = t.Limits.or(limits)
		if t.Check.Time == 0 {
			t.Check.Time = defaultCheckTime
		}
		if err := t.Validate(); err != nil {
			return c, fmt.Errorf("Config.Tasks: %q: %w", t.ID, err)
		}
		if c.Memory > 0 && t.Limits.Memory > c.Memory {
			return c, fmt.Errorf("Config.Memory: task %q may take %s, more than the %s for all "+
				"tasks that run at once", t.ID, units.BytesSize(float64(t.Limits.Memory)),
				units.BytesSize(float64(c.Memory)))
		}
		if c.CPUs > 0 && t.Limits.CPUs > c.CPUs {
			return c, fmt.Errorf("Config.CPUs: task %q may take %v, more than the %v for all tasks "+
				"that run at once", t.ID, t.Limits.CPUs, c.CPUs)
		}
		tasks[i] = t
	}
	c.Tasks = tasks
	return c, errors.Join(distinct(tasks), checkAgain(c.Again, tasks))
}

// Run has the agent do the tasks that have no result yet, several at a time, each in a box of its
// own, and returns the results of all. In Config.Dir it writes results.jsonl, with a line as each
// task ends; tasks/ID/log.txt and recording.cast, an asciicast of what the agent did; and in the
// end, also when ctx ends it, report.html. The order of start is the tasks'.
//
// When ctx ends, what is under way is given up and has no result; the error is ctx's. A run that
// was ended so, or killed, goes on when it is called again with the same Dir: boxes that were left
// over are removed first. Tasks that the infrastructure has lost are run again, too. What a task
// comes to is no error.
//
// The error is ErrChanged, and there is no Summary, if a task is not the one that has a result in
// Dir.
func Run(ctx context.Context, o Config) (*Summary, error) {
	given := o.Tasks
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	results, err := openResults(o.Dir, o.Name)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	r := &runner{Config: o, results: results, building: make(chan struct{}, 1)}
	began := time.Now()
	if err = r.digests(ctx, given); err == nil {
		err = r.again()
	}
	if err != nil {
		return nil, fmt.Errorf("harness: %w", errors.Join(err, results.close()))
	}
	if err = r.removeLeftOver(ctx); err == nil {
		err = r.all(ctx)
		if ctx.Err() == nil { // what the engine was still making for a program that was killed
			err = errors.Join(err, r.removeLeftOver(ctx))
		}
	}
	s := r.summary(time.Since(began))
	err = errors.Join(err, s.writeReport(o.Dir), results.close())
	if err != nil {
		err = fmt.Errorf("harness: %w", err)
	}
	return s, err
}

// A runner is a Run under way.
type runner struct {
	Config
	results  *results
	building chan struct{} // held by the one who builds an image
	progress *progress

	digest, imageID map[string]string // by the task's ID
}

// all runs what has no result yet.
func (r *runner) all(ctx context.Context) error {
	ctx, cancel := ctxerr.WithCancel(ctx)
	defer cancel(nil)
	var left []Task
	for _, t := range r.Tasks {
		if _, done := r.results.of(t.ID); !done {
			left = append(left, t)
		}
	}
	r.progress = newProgress(r.Config.Progress, len(r.Tasks), len(r.Tasks)-len(left))
	room := newRoom(r.Parallel, r.Memory, r.CPUs)
	var running sync.WaitGroup
	var ahead []*start // in order: those of left[begun:]
	begun := 0
	for ; begun < len(left) && room.take(ctx, left[begun].Limits); begun++ {
		for len(ahead) < min(1+r.Ahead, len(left)-begun) {
			ahead = append(ahead, r.start(ctx, left[begun+len(ahead)]))
		}
		next := ahead[0]
		ahead = ahead[1:]
		running.Go(func() {
			defer room.give(next.task.Limits)
			if err := r.one(ctx, next); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	for _, s := range ahead { // the end of ctx has come before their turn
		if err := s.close(); err != nil {
			cancel(err)
		}
	}
	if err := r.progress.end(); err != nil {
		cancel(fmt.Errorf("tell the progress: %w", err))
	}
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	return nil
}

// one runs a task to its result. The error is one that ends the whole run.
func (r *runner) one(ctx context.Context, s *start) error {
	task, cast := s.task, filepath.Join(s.dir, "recording.cast")
	os.Remove(filepath.Join(r.Dir, cast)) // of a run that was killed
	result := Result{Task: task.ID, Started: time.Now().UTC(),
		Log: filepath.ToSlash(filepath.Join(s.dir, "log.txt"))}
	r.progress.begin(task.ID)
	var v verdict
	for s.err == nil {
		result.Attempts++
		t := &trial{runner: r, start: s, cast: filepath.Join(r.Dir, cast)}
		v = t.run(ctx)
		v.reason = reasonOf(v.reason)
		t.say("%s %s", v.Status, v.reason)
		result.Times = t.times
		if t.fatal != nil {
			return errors.Join(t.fatal, s.close())
		}
		if v.Status != Lost || result.Attempts > r.Retries || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(result.Attempts) * time.Second):
			// an engine that restarts is back soon
		}
	}
	if err := s.close(); err != nil {
		return err
	}
	if ctx.Err() != nil { // what has come of it is not the task's
		return ctxerr.Of(ctx)
	}
	if hasEvents(filepath.Join(r.Dir, cast)) { // an agent that begins no command leaves none
		result.Recording = filepath.ToSlash(cast)
	}
	result.Digest, result.Image = r.digest[task.ID], r.imageID[task.ID]
	result.Status, result.Reason, result.Seconds = v.Status, v.reason,
		time.Since(result.Started).Seconds()
	if err := r.results.add(result); err != nil {
		return err
	}
	r.progress.done(result)
	return nil
}

// The labels of a box.
const (
	runLabel  = "harness.run"  // results.id
	taskLabel = "harness.task" // Task.ID
)

// linger is how long a box outlives a harness that was killed, if none is started again in its
// directory.
const linger = 20 * time.Second

// newBox makes a box for a task; the making of its image goes to the log.
func (r *runner) newBox(ctx context.Context, t *Task, log io.Writer) (sandbox.Sandbox, error) {
	image, err := r.image(ctx, t, log)
	if err != nil {
		return nil, err
	}
	c := r.Box
	c.Image, c.User = image, t.User
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], t.Env...)
	c.Network, c.Memory, c.CPUs, c.PIDs = t.Limits.Network, t.Limits.Memory, t.Limits.CPUs,
		t.Limits.PIDs
	if c.Linger == 0 {
		c.Linger = linger
	}
	labels := map[string]string{runLabel: r.results.id, taskLabel: t.ID}
	for k, v := range r.Box.Labels {
		labels[k] = v
	}
	c.Labels = labels
	box, err := sshbox.New(ctx, c)
	if err != nil {
		return nil, err
	}
	return box, nil
}

// image is the image of a task's box: built, if it is not there yet. One is built at a time, so
// that tasks that share one find it there.
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
	return sshbox.Engine{Docker: r.Box.Docker}.BuildImage(ctx,
		sshbox.Build{Dir: t.Build.Dir, Dockerfile: t.Build.Dockerfile, Log: log})
}

// removeLeftOver removes the boxes of an earlier run with this directory: it is locked, so nobody
// works with them.
func (r *runner) removeLeftOver(ctx context.Context) error {
	engine := sshbox.Engine{Docker: r.Box.Docker, Logger: r.Box.Logger}
	boxes, err := engine.List(ctx)
	if err != nil {
		return err
	}
	for _, b := range boxes {
		if b.Labels[runLabel] == r.results.id {
			if err := engine.Remove(ctx, b.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
