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

// A Config says what Run does. Tasks, Agent, Name and Dir must be set.
type Config struct {
	Tasks []Task
	Agent Agent
	// Name is the agent's name. A directory of results holds the results of one agent.
	Name string
	// Dir is the directory of results. Run creates it. A task that has a result there, from an
	// earlier run however that ended, is not run again.
	Dir string

	// Again names results to drop, so that their tasks are run again: statuses ("error"), IDs of
	// tasks, and Changed. Without Changed, Run returns ErrChanged before it runs any task, if a
	// task or its image has changed since it got its result.
	Again []string

	// Parallel is how many tasks run at once. Default: the number of this machine's processors.
	Parallel int
	// Ahead is for how many of the next tasks the image is built and the box made while other tasks
	// run, so that they begin at once. Nothing runs in such a box, and Memory and CPUs do not count
	// it. Default: 1. If Ahead is negative, no box is made ahead.
	Ahead int
	// Memory (bytes) and CPUs (processors) bound the sum of the limits of the tasks that run at
	// once. Default: no bound.
	Memory int64
	CPUs   float64
	// Defaults are the limits of tasks that do not set their own. Default: DefaultLimits.
	Defaults Limits
	// Retries is how often a task is tried again if the infrastructure loses its box. Default: 2.
	// If Retries is negative, the task is never tried again.
	Retries int

	// Box is what the boxes have beside what their tasks say: capabilities, a runtime, name
	// servers, the engine.
	Box sshbox.Config
	// Progress is told how far the run is: on a terminal by a bar, else by a line for each task
	// that ends. A Write that blocks holds up the run. After a Write that fails or panics there is
	// no other, and Run returns the error beside the Summary. Default: nothing is told.
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
			return c, fmt.Errorf(
				"Config.CPUs: task %q may take %v, more than the %v for all tasks "+
					"that run at once", t.ID, t.Limits.CPUs, c.CPUs)
		}
		tasks[i] = t
	}
	c.Tasks = tasks
	return c, errors.Join(distinct(tasks), checkAgain(c.Again, tasks))
}

// Run has the agent do the tasks that have no result yet, several at a time, each in a box of its
// own. It starts them in the order of c.Tasks, and returns the results of all tasks. In Config.Dir
// it writes:
//
//   - results.jsonl, a line as each task ends
//   - tasks/ID/log.txt, and tasks/ID/recording.cast, an asciicast of what the agent did
//   - report.html at the end, also if ctx ends the run
//
// If ctx ends, the tasks under way are given up and have no result, and the error is ctx's. To go
// on with a run that was ended so, or killed, call Run again with the same Dir. Run first removes
// the boxes that are left over. It runs again the tasks that the infrastructure has lost.
//
// A task that does not pass is no error. If a task has changed since it got its result in Dir, the
// error is ErrChanged, and the Summary is nil.
func Run(ctx context.Context, c Config) (*Summary, error) {
	given := c.Tasks
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	results, err := openResults(c.Dir, c.Name)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	r := &runner{cfg: c, results: results, building: make(chan struct{}, 1)}
	began := time.Now()
	if err = r.digests(ctx, given); err == nil {
		err = r.dropAgain()
	}
	if err != nil {
		return nil, fmt.Errorf("harness: %w", errors.Join(err, results.close()))
	}
	if err = r.removeLeftOver(ctx); err == nil {
		err = r.runTasks(ctx)
		if ctx.Err() == nil { // what the engine was still making for a program that was killed
			err = errors.Join(err, r.removeLeftOver(ctx))
		}
	}
	s := r.summary(time.Since(began))
	err = errors.Join(err, s.writeReport(c.Dir), results.close())
	if err != nil {
		err = fmt.Errorf("harness: %w", err)
	}
	return s, err
}

// A runner is a Run under way.
type runner struct {
	cfg      Config
	results  *results
	building chan struct{} // holds a token while an image is built
	progress *progress

	digest, imageID map[string]string // by the task's ID
}

// runTasks runs the tasks that have no result yet.
func (r *runner) runTasks(ctx context.Context) error {
	ctx, cancel := ctxerr.WithCancel(ctx)
	defer cancel(nil)
	var left []Task
	for _, t := range r.cfg.Tasks {
		if _, done := r.results.of(t.ID); !done {
			left = append(left, t)
		}
	}
	r.progress = newProgress(r.cfg.Progress, len(r.cfg.Tasks), len(r.cfg.Tasks)-len(left))
	room := newRoom(r.cfg.Parallel, r.cfg.Memory, r.cfg.CPUs)
	var running sync.WaitGroup
	var ahead []*aheadTask // of left[begun:], in order
	begun := 0
	for ; begun < len(left) && room.take(ctx, left[begun].Limits); begun++ {
		for len(ahead) < min(1+r.cfg.Ahead, len(left)-begun) {
			ahead = append(ahead, r.prepare(ctx, left[begun+len(ahead)]))
		}
		next := ahead[0]
		ahead = ahead[1:]
		running.Go(func() {
			defer room.give(next.task.Limits)
			if err := r.runTask(ctx, next); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	for _, a := range ahead { // ctx ended before their turn
		if err := a.close(); err != nil {
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

// runTask runs a task until it has a result. An error ends the whole run.
func (r *runner) runTask(ctx context.Context, a *aheadTask) error {
	task, cast := a.task, filepath.Join(a.dir, "recording.cast")
	os.Remove(filepath.Join(r.cfg.Dir, cast)) // of a run that was killed
	result := Result{Task: task.ID, Started: time.Now().UTC(),
		Log: filepath.ToSlash(filepath.Join(a.dir, "log.txt"))}
	r.progress.begin(task.ID)
	var v verdict
	for a.err == nil {
		result.Attempts++
		t := &trial{run: r, ahead: a, task: task, log: a.log,
			cast: filepath.Join(r.cfg.Dir, cast)}
		v = t.attempt(ctx)
		v.reason = reasonOf(v.reason)
		t.say("%s %s", v.Status, v.reason)
		result.Times = t.times
		if t.fatal != nil {
			return errors.Join(t.fatal, a.close())
		}
		if v.Status != Lost || result.Attempts > r.cfg.Retries || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(result.Attempts) * time.Second):
			// An engine that restarts is back soon.
		}
	}
	if err := a.close(); err != nil {
		return err
	}
	if ctx.Err() != nil { // then the verdict says nothing about the task
		return ctxerr.Of(ctx)
	}
	if hasEvents(filepath.Join(r.cfg.Dir, cast)) { // an agent that runs no command leaves none
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

// linger is how long a box outlives a harness that was killed, unless another harness is started
// with the same directory.
const linger = 20 * time.Second

// newBox makes a box for a task. What the engine says while it builds the image goes to log.
func (r *runner) newBox(ctx context.Context, t *Task, log io.Writer) (sandbox.Sandbox, error) {
	image, err := r.image(ctx, t, log)
	if err != nil {
		return nil, err
	}
	c := r.cfg.Box
	c.Image, c.User = image, t.User
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], t.Env...)
	c.Network, c.Memory, c.CPUs, c.PIDs = t.Limits.Network, t.Limits.Memory, t.Limits.CPUs,
		t.Limits.PIDs
	if c.Linger == 0 {
		c.Linger = linger
	}
	labels := map[string]string{runLabel: r.results.id, taskLabel: t.ID}
	for k, v := range r.cfg.Box.Labels {
		labels[k] = v
	}
	c.Labels = labels
	box, err := sshbox.New(ctx, c)
	if err != nil {
		return nil, err
	}
	return box, nil
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
	return sshbox.Engine{Docker: r.cfg.Box.Docker}.BuildImage(ctx,
		sshbox.Build{Dir: t.Build.Dir, Dockerfile: t.Build.Dockerfile, Log: log})
}

// removeLeftOver removes the boxes of an earlier run with this directory. The directory is locked,
// so no other process uses them.
func (r *runner) removeLeftOver(ctx context.Context) error {
	engine := sshbox.Engine{Docker: r.cfg.Box.Docker, Logger: r.cfg.Box.Logger}
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
