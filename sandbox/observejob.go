package sandbox

import (
	"context"
	"strings"
)

// An observedJob tells its observer.
type observedJob struct {
	Job
	box      *observed
	observer JobObserver
	reported chan struct{} // closed when the observer has been told of the end
	awaits   InputKind     // what the job waits for, as far as is known; box.mu guards it
}

// Background implements Sandbox.
func (b *observed) Background(ctx context.Context, command string,
	opts ...SessionOption) (Job, error) {
	if ctx == nil {
		return b.Sandbox.Background(ctx, command, opts...) // which says so
	}
	o := NewSessionOptions(opts...)
	o.Rows, o.Cols = b.sizeOf(o)
	ctx, observer := b.observer.Background(ctx, command, o)
	inner, err := b.Sandbox.Background(ctx, command,
		append(opts[:len(opts):len(opts)], LogTo(observer))...)
	if err != nil {
		observer.End(nil, err)
		return nil, err
	}
	j := &observedJob{Job: inner, box: b, observer: observer, reported: make(chan struct{})}
	observer.Started(j.ID())
	b.mu.Lock()
	b.jobs[j.ID()] = j
	b.mu.Unlock()
	b.running.Go(func() {
		defer close(j.reported)
		<-inner.Done()
		observer.End(inner.Wait(context.Background()))
	})
	return j, nil
}

// Status implements Job.
func (j *observedJob) Status(ctx context.Context) (*Result, error) {
	res, err := j.Job.Status(ctx)
	j.learn(res)
	return res, err
}

// Until implements Job.
func (j *observedJob) Until(ctx context.Context, opts ...ExecOption) (*Result, error) {
	res, err := j.Job.Until(ctx, opts...)
	j.learn(res)
	if res != nil && res.State != Exited {
		j.observer.Result(res)
	}
	return res, err
}

// learn records what the job waits for. res may be nil.
func (j *observedJob) learn(res *Result) {
	if res == nil {
		return
	}
	j.box.mu.Lock()
	defer j.box.mu.Unlock()
	j.awaits = res.Awaits
}

// Input implements Job.
func (j *observedJob) Input(ctx context.Context, text string) error {
	j.box.mu.Lock()
	awaits := j.awaits
	if strings.ContainsAny(text, "\n\r\x04") {
		j.awaits = 0 // the next line may answer another question
	}
	j.box.mu.Unlock()
	j.observer.Input(text, awaits)
	return j.Job.Input(ctx, text)
}

// Resize implements Job.
func (j *observedJob) Resize(ctx context.Context, rows, cols int) error {
	err := j.Job.Resize(ctx, rows, cols)
	if o, ok := j.observer.(interface{ Resize(rows, cols int) }); ok && err == nil {
		o.Resize(rows, cols)
	}
	return err
}

// Forget implements Job.
func (j *observedJob) Forget() error {
	select {
	case <-j.Done():
		<-j.reported // the observer gets the result of a Wait, which needs the job
	default:
	}
	err := j.Job.Forget()
	if err == nil {
		j.box.mu.Lock()
		defer j.box.mu.Unlock()
		delete(j.box.jobs, j.ID())
	}
	return err
}

// Job implements Sandbox.
func (b *observed) Job(id string) (Job, bool) {
	j, ok := b.Sandbox.Job(id)
	if !ok {
		return nil, false
	}
	return b.observedJob(j), true
}

// Jobs implements Sandbox.
func (b *observed) Jobs() []Job {
	jobs := b.Sandbox.Jobs()
	for i, j := range jobs {
		jobs[i] = b.observedJob(j)
	}
	return jobs
}

// observedJob returns j as it is observed. A job that another program has started is not.
func (b *observed) observedJob(j Job) Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.jobs[j.ID()]; known != nil {
		return known
	}
	return j
}
