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
	"github.com/sandshell/sandshell/egress"
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
	// Dir is the directory of results. Run creates it. Run does not run a task that has a result
	// there from an earlier run, however that run ended.
	Dir string

	// Again names results to drop, so that their tasks are run again: statuses ("error") and IDs of
	// tasks. A task that has changed since its result, or whose files or image have, is run again
	// in any case, and Result.Before says so.
	Again []string
	// Samples is how often each task is done, each time in a box of its own. It may be raised later
	// for the same Dir: the samples that are there count. See Summary.PassAt.
	//
	// The samples of a task share its Files and Setup: the first of them makes a snapshot of its
	// box, with which the others begin, and their retries too. If a snapshot would lack something
	// that the setup has left, such as a program that runs, or if the Place makes no snapshots,
	// each sample runs the setup, and the log says why. Default: 1.
	Samples int
	// References is a directory for what the reference solutions of Check.Like leave. They run once
	// for each task and image, whatever the number of samples. Several Runs may share the
	// directory, also at once. Default: Dir/references.
	References string

	// Before is the directory of results of an earlier run, such as of another agent. The report
	// compares the results with it: see Compare. Default: it compares with nothing.
	Before string

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
	// Egress may add to what tasks with Limits.Egress get, before their boxes are attached:
	// secrets, limits, a tape, a Log. c has the task's rules, and a Log that tells the task's log
	// what was refused. It is called for each box, from several goroutines. Default: nothing is
	// added.
	Egress func(t Task, c *egress.Config) error
	// Retries is how often a task is tried again if the infrastructure loses its box. Default: 2.
	// If Retries is negative, the task is never tried again.
	Retries int

	// Place makes the boxes, of what the tasks say: containers, pods, boxes on machines with an
	// sshd, or on this machine. If a task says what the place cannot honour, such as an image where
	// there are none, Run returns an error that names the task and the field before it runs any
	// task. Default: sshbox.Place{}.
	Place sandbox.Place
	// Progress shows how far the run is: by a bar if it is a terminal, else by a line for each task
	// that ends. A Write that blocks holds up the run. If a Write fails or panics, Run writes
	// nothing more, and returns the error beside the Summary. Default: nothing is shown.
	Progress io.Writer
}

func (c Config) withDefaults(ctx context.Context) (Config, error) {
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
	if c.Samples == 0 {
		c.Samples = 1
	}
	if c.References == "" {
		c.References = filepath.Join(c.Dir, "references")
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
		return c, errors.New("Config.Tasks: it is empty: Read returns the tasks of a file")
	case c.Parallel < 0:
		return c, fmt.Errorf("Config.Parallel: %d is negative: 0 means the number of processors",
			c.Parallel)
	case c.Samples < 0:
		return c, fmt.Errorf("Config.Samples: %d is negative: 0 means one", c.Samples)
	case c.Memory < 0:
		return c, fmt.Errorf("Config.Memory: %d is negative: 0 means no bound", c.Memory)
	case c.CPUs < 0:
		return c, fmt.Errorf("Config.CPUs: %v is negative: 0 means no bound", c.CPUs)
	}
	if c.Place == nil {
		c.Place = sshbox.Place{}
	}
	if err := sandbox.CheckSpec(c.Place, sandbox.Spec{}); err != nil {
		return c, fmt.Errorf("Config.Place: %w", err)
	}
	unheld := unheldBy(ctx, c.Place)
	limits := c.Defaults.or(supportedDefaults(c.Place, unheld))
	tasks := make([]Task, len(c.Tasks))
	for i, t := range c.Tasks {
		t.Limits = t.Limits.or(limits)
		if t.Check.Time == 0 {
			t.Check.Time = defaultCheckTime
		}
		if err := t.Validate(); err != nil {
			return c, fmt.Errorf("Config.Tasks[%d]: %q: %w", i, t.ID, err)
		}
		if err := checkPlace(c.Place, unheld, &t); err != nil {
			return c, fmt.Errorf("Config.Tasks[%d]: %q: %w", i, t.ID, err)
		}
		if c.Memory > 0 && t.Limits.Memory > c.Memory {
			return c, fmt.Errorf("Config.Memory: task %q may take %s, more than %s: raise "+
				"Config.Memory, or lower the task's limits.memory", t.ID,
				units.BytesSize(float64(t.Limits.Memory)), units.BytesSize(float64(c.Memory)))
		}
		if c.CPUs > 0 && t.Limits.CPUs > c.CPUs {
			return c, fmt.Errorf("Config.CPUs: task %q may take %v, more than %v: raise "+
				"Config.CPUs, or lower the task's limits.cpus", t.ID, t.Limits.CPUs, c.CPUs)
		}
		tasks[i] = t
	}
	c.Tasks = tasks
	if err := checkDistinct(tasks); err != nil {
		return c, fmt.Errorf("Config.Tasks: %w", errors.Unwrap(err))
	}
	return c, checkAgain(c.Again, tasks)
}

// Run has the agent do the tasks that have no result yet, several at a time, each in a box of its
// own. It starts them in the order of c.Tasks, first all tasks' first samples, and returns the
// results of all tasks. In Config.Dir it writes:
//
//   - results.jsonl, a line as each task ends
//   - tasks/ID/log.txt, and tasks/ID/recording.cast, an asciicast of what the agent did
//   - tasks/ID/egress.jsonl, if the task has Limits.Egress: an egress.Event in each line, of all
//     that its boxes asked of the network, up to 16 MiB
//   - report.html, which shows the run while it goes on, and a page of each task,
//     tasks/ID/index.html
//
// If ctx ends, the tasks under way have no result, and the error is ctx's. To go on with a run that
// was cancelled or killed, call Run again with the same Dir. Run first removes the boxes that are
// left over. It runs the tasks again that the infrastructure has lost.
//
// A task that does not pass is no error.
func Run(ctx context.Context, c Config) (*Summary, error) {
	given := c.Tasks
	c, err := c.withDefaults(ctx)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	before, err := c.readBefore()
	if err != nil {
		return nil, fmt.Errorf("harness: Config.Before: %w", err)
	}
	results, err := openResults(c.Dir, c.Name)
	if err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	r := &runner{cfg: c, results: results, building: make(chan struct{}, 1),
		references: &references{dir: c.References}}
	began := time.Now()
	if err = r.digestTasks(ctx, given); err == nil {
		err = r.dropResults()
	}
	if err != nil {
		return nil, fmt.Errorf("harness: %w", errors.Join(err, results.close()))
	}
	r.report = newReport(c.Dir, c.Name, r.reportRows(), before)
	if err = r.removeLeftOver(ctx); err == nil {
		err = r.runTasks(ctx)
		if ctx.Err() == nil { // the engine may have gone on making boxes for a killed program
			err = errors.Join(err, r.removeLeftOver(ctx))
		}
	}
	s := r.summary(time.Since(began))
	err = errors.Join(err, r.report.end(s.Duration), results.close())
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
	report   *report
	setups   map[string]*sharedSetup // by the task's ID

	digest, imageID map[string]string   // by the task's ID
	before          map[sampleID]Status // of the samples whose tasks have changed since
	references      *references
}

// runTasks runs the tasks that have no result yet.
func (r *runner) runTasks(ctx context.Context) error {
	ctx, cancel := ctxerr.WithCancel(ctx)
	defer cancel(nil)
	var left []Task // with the task of each sample that has no result
	var number []int
	for n := 1; n <= r.cfg.Samples; n++ {
		for _, t := range r.cfg.Tasks {
			if _, done := r.results.get(sampleID{t.ID, n}); !done {
				left, number = append(left, t), append(number, n)
			}
		}
	}
	r.shareSetups(left)
	all := len(r.cfg.Tasks) * r.cfg.Samples
	r.progress = newProgress(r.cfg.Progress, all, all-len(left))
	room := newCapacity(r.cfg.Parallel, r.cfg.Memory, r.cfg.CPUs)
	var running sync.WaitGroup
	var ahead []*aheadTask // of left[begun:], in order
	begun := 0
	for ; begun < len(left) && room.acquire(ctx, left[begun].Limits); begun++ {
		for len(ahead) < min(1+r.cfg.Ahead, len(left)-begun) {
			next := begun + len(ahead)
			ahead = append(ahead, r.prepare(ctx, left[next], number[next]))
		}
		next := ahead[0]
		ahead = ahead[1:]
		running.Go(func() {
			defer room.release(next.task.Limits)
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
	for id, s := range r.setups { // ctx may have ended before the last sample's turn
		if err := s.remove(); err != nil {
			cancel(fmt.Errorf("task %q: %w", id, err))
		}
	}
	if err := r.progress.end(); err != nil {
		cancel(fmt.Errorf("write to Config.Progress: %w", err))
	}
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	return nil
}

// runTask runs a task until it has a result. An error ends the whole run.
func (r *runner) runTask(ctx context.Context, a *aheadTask) error {
	task, cast := a.task, filepath.Join(a.dir, "recording.cast")
	os.Remove(filepath.Join(r.cfg.Dir, cast)) // a run that was killed may have left one
	result := Result{Task: task.ID, Sample: a.sample, Tags: task.Tags, Started: time.Now().UTC(),
		Dir: filepath.ToSlash(a.dir), Log: filepath.ToSlash(filepath.Join(a.dir, "log.txt"))}
	result.Before = r.before[result.id()]
	r.progress.taskBegan(result.id().String())
	r.report.taskBegan(&task, result)
	var v verdict
	for a.err == nil {
		result.Attempts++
		t := &attempt{run: r, ahead: a, task: task, log: a.log,
			cast: filepath.Join(r.cfg.Dir, cast)}
		v = t.do(ctx)
		v.reason = reasonOf(v.reason)
		t.logf("%s %s", v.Status, v.reason)
		result.Times = t.times
		t.giveNumbers(&result)
		if v.Status != Lost || result.Attempts > r.cfg.Retries || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(result.Attempts) * time.Second):
			// An engine that was restarted needs a moment.
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
	r.report.taskEnding(&task, result)
	if err := r.results.add(result); err != nil {
		return err
	}
	r.report.taskEnded(result)
	r.progress.taskEnded(result)
	return nil
}
