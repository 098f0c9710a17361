package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/sandshell/sandshell/sandbox"
)

// A job is traced until its end.
type job struct {
	sandbox.Job
	box  *Box
	told chan struct{} // closed when its span has ended
}

// Background implements sandbox.Sandbox.
func (b *Box) Background(ctx context.Context, command string,
	opts ...sandbox.SessionOption) (sandbox.Job, error) {
	if ctx == nil {
		return b.Sandbox.Background(ctx, command, opts...) // which says so
	}
	ctx, c := b.begin(ctx, "background")
	inner, err := b.Sandbox.Background(ctx, command,
		append(opts[:len(opts):len(opts)], sandbox.LogTo(c))...)
	if err != nil {
		c.end(nil, err)
		return nil, err
	}
	c.span.SetAttributes(attribute.String("sandshell.session", inner.ID()))
	j := &job{Job: inner, box: b, told: make(chan struct{})}
	b.mu.Lock()
	b.known[j.ID()] = j
	b.mu.Unlock()
	b.jobs.Go(func() {
		defer close(j.told)
		<-inner.Done()
		c.end(inner.Wait(context.Background()))
	})
	return j, nil
}

// Forget implements sandbox.Job.
func (j *job) Forget() error {
	select {
	case <-j.Done():
		<-j.told // it asks for the status
	default:
	}
	err := j.Job.Forget()
	if err == nil {
		j.box.mu.Lock()
		defer j.box.mu.Unlock()
		delete(j.box.known, j.ID())
	}
	return err
}

// Job implements sandbox.Sandbox.
func (b *Box) Job(id string) (sandbox.Job, bool) {
	j, ok := b.Sandbox.Job(id)
	if !ok {
		return nil, false
	}
	return b.traced(j), true
}

// Jobs implements sandbox.Sandbox.
func (b *Box) Jobs() []sandbox.Job {
	jobs := b.Sandbox.Jobs()
	for i, j := range jobs {
		jobs[i] = b.traced(j)
	}
	return jobs
}

// traced returns the job as it is traced, if it is.
func (b *Box) traced(j sandbox.Job) sandbox.Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	if traced := b.known[j.ID()]; traced != nil {
		return traced
	}
	return j
}
