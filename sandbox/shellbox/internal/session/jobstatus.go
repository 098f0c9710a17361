package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/waiting"
)

// Until implements sandbox.Job.
func (j *Job) Until(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	r, err := j.until(ctx, sandbox.NewExecOptions(opts...))
	if err != nil {
		err = fmt.Errorf("wait for %s: %w", j.session.id, err)
	}
	return r, err
}

func (j *Job) until(ctx context.Context, o sandbox.ExecOptions) (*sandbox.Result, error) {
	if err := CheckContext(ctx); err != nil {
		return nil, err
	}
	if err := checkPolicy(o.Question); err != nil {
		return nil, err
	}
	w, err := j.newCall(o)
	if err != nil {
		return nil, err
	}
	r, err := w.waitAndDrain(ctx, onEndLeave)
	if r != nil && r.State == sandbox.Exited {
		select {
		case <-j.done:
		case <-ctx.Done(): // a writer of LogTo blocks
			return r, errors.Join(err, ctxerr.Of(ctx))
		}
		if j.result != nil {
			r.OOM = j.result.OOM
		}
		err = errors.Join(err, j.logErr)
	}
	return r, err
}

// newCall begins a call about the job.
func (j *Job) newCall(o sandbox.ExecOptions) (*call, error) {
	s, c := j.session, j.cmd
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case j.spool.Closed():
		return nil, sandbox.ErrClosed
	case s.err != nil && c.phase < phase.Ended:
		return nil, s.err
	}
	if !j.kept { // a job that nobody asks about takes no memory for its output
		part, err := j.spool.HeadTail()
		if err != nil {
			return nil, err
		}
		c.out.Restore(part)
		j.kept = true
	}
	return s.newCallLocked(c, o), nil
}

// Status implements sandbox.Job.
func (j *Job) Status(ctx context.Context) (*sandbox.Result, error) {
	r, err := j.status(ctx)
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", j.session.id, err)
	}
	return r, nil
}

func (j *Job) status(ctx context.Context) (*sandbox.Result, error) {
	if err := CheckContext(ctx); err != nil {
		return nil, err
	}
	if j.spool.Closed() {
		return nil, sandbox.ErrClosed
	}
	found := make(chan *sandbox.Result, 1)
	look := j.look
	if j.session.opts.Pipes {
		look = j.running
	}
	err := j.session.spawn(func() { found <- look() })
	if err == nil {
		select {
		case r := <-found:
			if r != nil {
				return r, nil
			}
		case <-ctx.Done():
			return nil, ctxerr.Of(ctx)
		}
	}
	if err := j.awaitEnd(ctx); err != nil { // which is near
		return nil, err
	}
	r := *j.result
	return &r, nil
}

// look looks until it is sure how far the job has got: three times, unless the machine is busy. A
// job of which it cannot be sure for a second runs. On a busy machine one look may last as long, so
// it looks often enough to be sure. It returns nil if the job has ended.
func (j *Job) look() *sandbox.Result {
	s, c := j.session, j.cmd
	s.mu.Lock()
	l := &statusLook{watch: s.newWatch(c, s.sh), began: time.Now(), printed: c.printed}
	s.mu.Unlock()
	for pause := time.Duration(0); ; {
		select {
		case <-c.done:
			return nil
		case <-s.ended:
			return nil
		case <-time.After(pause):
		}
		s.mu.Lock()
		seen := c.active
		s.mu.Unlock()
		f := l.look(seen)
		if f.Found() {
			f.Busy = s.box.Processes.Settle(l.sh.proc)
		}
		s.mu.Lock()
		var r *sandbox.Result
		r, pause = l.judgeLocked(&f)
		s.mu.Unlock()
		if r != nil {
			return r
		}
	}
}

// A statusLook looks how far a job has got now. Its looks are those of a watch.
type statusLook struct {
	*watch
	began   time.Time
	printed int64 // what the job had printed then
	count   int   // of the looks
}

// judgeLocked weighs a finding. It returns the job's status, or how long to wait before the next
// look.
func (l *statusLook) judgeLocked(f *waiting.Finding) (r *sandbox.Result, pause time.Duration) {
	s, c := l.s, l.c
	missing, apart := l.addLocked(f)
	l.count++
	r = &sandbox.Result{State: sandbox.Running, ExitCode: -1, FullScreen: c.out.FullScreen(),
		Duration: time.Since(c.began)}
	q := l.looks.Question(f, missing, c.question)
	switch {
	case !f.Found(), c.phase.Over(), c.phase.Killed(), c.blocksReader(), c.printed != l.printed,
		s.box.ControlShell && time.Now().Before(c.inputDue) && c.isDeaf(f),
		(missing > 0 || c.phase != phase.Running) && l.count > waiting.LooksToAgree &&
			time.Since(l.began) > waiting.Surely:
		return r, 0
	case q.Certainty == waiting.Unasked, missing > 0 && f.Certainty > waiting.MayWork:
		return nil, apart
	case c.phase != phase.Running: // the beginning of its output is on its way
		return nil, waiting.PaceMax
	case q.Certainty == waiting.MayWork && time.Since(c.active) < c.patienceLocked(q.Reader):
		return r, 0
	}
	if missing <= 0 {
		c.lastWait, c.inputDue = f.Wait, time.Time{}
	}
	r.State, r.Awaits, r.MayGoOn = sandbox.Waiting, q.Reader.Kind, q.Certainty != waiting.Certain
	return r, 0
}
