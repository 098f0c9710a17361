package sandbox

import (
	"context"
	"fmt"
	"time"
)

// A recordedJob writes down what goes on in a job. Its output comes by LogTo.
type recordedJob struct {
	Job
	rec   *Recording
	track *track
	noted chan struct{} // closed when its end is in the recording
}

// Background implements Sandbox.
func (r *Recording) Background(ctx context.Context, command string,
	opts ...SessionOption) (Job, error) {
	o := NewSessionOptions(opts...)
	t := &jobTrack{known: make(chan struct{})}
	began := time.Now()
	j, err := r.Sandbox.Background(ctx, command, append(opts[:len(opts):len(opts)], LogTo(t))...)
	if err != nil {
		close(t.known)
		return nil, err
	}
	recorded := &recordedJob{Job: j, rec: r, track: r.track(j.ID(), o), noted: make(chan struct{})}
	recorded.track.begin(command)
	t.track = recorded.track
	close(t.known)
	r.mu.Lock()
	r.known[j.ID()] = recorded
	r.mu.Unlock()
	r.jobs.Go(func() { recorded.watch(began) })
	return recorded, nil
}

// A jobTrack takes a job's output, which waits until the job's id is known.
type jobTrack struct {
	track *track
	known chan struct{}
}

func (t *jobTrack) Write(p []byte) (int, error) {
	<-t.known
	if t.track == nil {
		return len(p), nil
	}
	return t.track.Write(p)
}

// watch waits for the job's end.
func (j *recordedJob) watch(began time.Time) {
	defer close(j.noted)
	<-j.Done()
	took := time.Since(began).Seconds()
	res, err := j.Job.Wait(context.Background())
	if res == nil {
		j.track.end(fmt.Sprintf("ended after %.3f s: %v", took, err))
	} else { // also beside an error: of a writer of LogTo
		j.track.end(fmt.Sprintf("exit status %d after %.3f s", res.ExitCode, took))
	}
	j.track.leave()
}

// Input implements Job. Nobody knows what the job asks for: only single control characters are
// shown.
func (j *recordedJob) Input(ctx context.Context, text string) error {
	if len(text) == 1 && text[0] < ' ' {
		j.track.input(text)
	} else {
		j.track.input("")
	}
	return j.Job.Input(ctx, text)
}

// Forget implements Job.
func (j *recordedJob) Forget() error {
	select {
	case <-j.Done():
		<-j.noted // its status is asked for
	default:
	}
	err := j.Job.Forget()
	if err == nil {
		j.rec.mu.Lock()
		defer j.rec.mu.Unlock()
		delete(j.rec.known, j.ID())
	}
	return err
}

// Job implements Sandbox.
func (r *Recording) Job(id string) (Job, bool) {
	j, ok := r.Sandbox.Job(id)
	if !ok {
		return nil, false
	}
	return r.recorded(j), true
}

// Jobs implements Sandbox.
func (r *Recording) Jobs() []Job {
	jobs := r.Sandbox.Jobs()
	for i, j := range jobs {
		jobs[i] = r.recorded(j)
	}
	return jobs
}

// recorded returns the job as it is recorded, if it is.
func (r *Recording) recorded(j Job) Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if recorded := r.known[j.ID()]; recorded != nil {
		return recorded
	}
	return j
}
