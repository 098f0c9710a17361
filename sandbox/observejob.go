package sandbox

import "context"

// An observedJob tells its observer.
type observedJob struct {
	Job
	box      *observed
	observer JobObserver
	told     chan struct{} // closed when the observer has been told of the end
}

// Background implements Sandbox.
func (b *observed) Background(ctx context.Context, command string,
	opts ...SessionOption) (Job, error) {
	if ctx == nil {
		return b.Sandbox.Background(ctx, command, opts...) // which says so
	}
	ctx, observer := b.observer.Background(ctx, command, NewSessionOptions(opts...))
	inner, err := b.Sandbox.Background(ctx, command,
		append(opts[:len(opts):len(opts)], LogTo(observer))...)
	if err != nil {
		observer.End(nil, err)
		return nil, err
	}
	j := &observedJob{Job: inner, box: b, observer: observer, told: make(chan struct{})}
	observer.Started(j.ID())
	b.mu.Lock()
	b.jobs[j.ID()] = j
	b.mu.Unlock()
	b.running.Go(func() {
		defer close(j.told)
		<-inner.Done()
		observer.End(inner.Wait(context.Background()))
	})
	return j, nil
}

// Input implements Job.
func (j *observedJob) Input(ctx context.Context, text string) error {
	j.observer.Input(text)
	return j.Job.Input(ctx, text)
}

// Forget implements Job.
func (j *observedJob) Forget() error {
	select {
	case <-j.Done():
		<-j.told // the Wait that tells needs the job
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
