package shellbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// A job is one of the box's jobs.
type job struct {
	*session.Job
	box    *Box
	listed bool // the host has listed it; box.mu guards it
}

// Background implements sandbox.Sandbox.
func (b *Box) Background(ctx context.Context, command string,
	opts ...sandbox.SessionOption) (sandbox.Job, error) {
	j, err := b.background(ctx, command, sandbox.NewSessionOptions(opts...))
	if err != nil {
		return nil, fmt.Errorf("background %s: %w", session.Abridged(command), err)
	}
	return j, nil
}

func (b *Box) background(ctx context.Context, command string,
	opts sandbox.SessionOptions) (*job, error) {
	begun := session.NewJob(command, opts.MaxLog)
	for {
		_, err := b.open(ctx, b.newID("job"), begun, opts)
		if err == nil {
			break
		}
		if !b.isTaken("job", err) {
			return nil, err
		}
	}
	// here: a Kill from now on finds it begun
	if err := begun.Begin(opts.LogTo); err != nil {
		return nil, err
	}
	b.mu.Lock()
	closed := b.closed
	var j *job
	if !closed {
		j = b.addJobLocked(begun)
	}
	b.mu.Unlock()
	if closed {
		begun.Close()
		return nil, sandbox.ErrClosed
	}
	return j, nil
}

// addJobLocked adds a job in the order of the ids.
func (b *Box) addJobLocked(begun *session.Job) *job {
	j := &job{Job: begun, box: b}
	b.jobs = append(b.jobs, j)
	slices.SortFunc(b.jobs, func(a, c *job) int { return numberOf(a.ID()) - numberOf(c.ID()) })
	return j
}

// Job implements sandbox.Sandbox. If other programs use the box too, Job asks the host for a job
// that they have begun, and whether they have forgotten one that has ended.
func (b *Box) Job(id string) (sandbox.Job, bool) {
	if j := b.knownJob(id); j != nil && !j.HasEnded() {
		return j, true
	}
	b.lookAround()
	if j := b.knownJob(id); j != nil {
		return j, true
	}
	return nil, false
}

func (b *Box) knownJob(id string) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.knownJobLocked(id)
}

func (b *Box) knownJobLocked(id string) *job {
	for _, j := range b.jobs {
		if j.ID() == id {
			return j
		}
	}
	return nil
}

// Jobs implements sandbox.Sandbox.
func (b *Box) Jobs() []sandbox.Job {
	b.lookAround()
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs := make([]sandbox.Job, len(b.jobs))
	for i, j := range b.jobs {
		jobs[i] = j
	}
	return jobs
}

// Forget implements sandbox.Job.
func (j *job) Forget() error {
	if err := j.Job.Forget(); err != nil {
		return err
	}
	j.box.mu.Lock()
	j.box.jobs = slices.DeleteFunc(j.box.jobs, func(other *job) bool { return other == j })
	j.box.mu.Unlock()
	j.Release()
	return nil
}
