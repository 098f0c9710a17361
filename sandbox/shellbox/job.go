package shellbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
)

// A job is a command in a session of its own. Its output goes to a spool.
type job struct {
	box     *Box
	id      string
	command string
	s       *session
	spool   *output.Spool
	done    chan struct{}
	result  *sandbox.Result // when done
	err     error           // when done: the box was closed or lost
	logErr  error           // when done: what is lost to LogTo
}

// Background implements sandbox.Sandbox.
func (b *Box) Background(ctx context.Context, command string,
	opts ...sandbox.SessionOption) (sandbox.Job, error) {
	j, err := b.background(ctx, command, sandbox.NewSessionOptions(opts...))
	if err != nil {
		return nil, fmt.Errorf("background %s: %w", abridged(command), err)
	}
	return j, nil
}

func (b *Box) background(ctx context.Context, command string,
	opts sandbox.SessionOptions) (*job, error) {
	j := &job{box: b, id: b.newID("job"), command: command, spool: output.NewSpool(opts.MaxLog),
		done: make(chan struct{})}
	var err error
	if j.s, err = b.open(ctx, j.id, j, opts); err != nil {
		return nil, err
	}
	c := newCommand(command, true)
	c.spool = j.spool
	// here: a Kill from now on finds it begun
	w, err := j.s.begin(context.Background(), c, sandbox.ExecOptions{MaxOutput: 1,
		Follow: opts.LogTo})
	if err == nil {
		b.mu.Lock()
		if b.closed {
			err = sandbox.ErrClosed
		} else {
			b.jobs = append(b.jobs, j)
		}
		b.mu.Unlock()
	}
	if err != nil {
		j.s.Close()
		j.spool.Close()
		return nil, err
	}
	go j.run(w)
	return j, nil
}

// run waits for the job's end.
func (j *job) run(w *call) {
	defer close(j.done)
	j.result, j.err = w.wait(context.Background(), onEndKill)
	j.logErr = w.drain(context.Background())
	if j.err == nil {
		j.result.OOM = j.result.OOM || j.s.oomKilled(w.c)
		j.s.hangup()
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	j.s.screen, j.s.unreported = terminal.NewTail(0), nil // a job is remembered long after its end
}

// Job implements sandbox.Sandbox.
func (b *Box) Job(id string) (sandbox.Job, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range b.jobs {
		if j.id == id {
			return j, true
		}
	}
	return nil, false
}

// Jobs implements sandbox.Sandbox.
func (b *Box) Jobs() []sandbox.Job {
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs := make([]sandbox.Job, len(b.jobs))
	for i, j := range b.jobs {
		jobs[i] = j
	}
	return jobs
}

func (j *job) ID() string            { return j.id }
func (j *job) Command() string       { return j.command }
func (j *job) Done() <-chan struct{} { return j.done }

// endErr returns os.ErrProcessDone after the job's end, or why the job cannot be reached.
func (j *job) endErr() error {
	if j.s.endErr() != nil { // the job's own end is a moment later
		<-j.done
	}
	select {
	case <-j.done:
		if j.err != nil {
			return j.err
		}
		return os.ErrProcessDone
	default:
		return nil
	}
}

const logsMax = 1 << 20

// Logs implements sandbox.Job.
func (j *job) Logs(ctx context.Context, offset int64) ([]byte, int64, error) {
	data, next, err := j.spool.Read(offset, logsMax)
	if err == nil {
		err = checkContext(ctx)
	}
	if err != nil {
		return nil, offset, fmt.Errorf("logs of %s: %w", j.id, err)
	}
	return data, next, nil
}

// Input implements sandbox.Job.
func (j *job) Input(ctx context.Context, text string) error {
	err := j.endErr()
	if errors.Is(err, os.ErrProcessDone) {
		err = sandbox.ErrIdle
	}
	if err == nil {
		err = checkContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("input to %s: %w", j.id, err)
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	j.s.typeLocked(text)
	return nil
}

// Signal implements sandbox.Job.
func (j *job) Signal(ctx context.Context, sig syscall.Signal) error {
	err := j.endErr()
	if err == nil {
		err = checkContext(ctx)
	}
	if err == nil {
		err = j.signal(proc.Signal(strconv.Itoa(int(sig))))
	}
	if err != nil {
		return fmt.Errorf("signal %v to %s: %w", sig, j.id, err)
	}
	return nil
}

// signal signals the foreground of the job's terminal. The job's command may have ended, see kill.
func (j *job) signal(sig proc.Signal) error {
	j.s.mu.Lock()
	sh := j.s.sh
	j.s.mu.Unlock()
	select {
	case <-sh.exited: // its id may be another process's
		return os.ErrProcessDone
	default:
		return j.box.signalForeground(sh.pid, sig)
	}
}

// Kill implements sandbox.Job.
func (j *job) Kill(ctx context.Context) error {
	err := j.endErr()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err == nil {
		err = checkContext(ctx)
	}
	if err == nil {
		killed := make(chan struct{})
		over := j.s.spawn(func() { // the session's: it goes on when ctx has ended
			defer close(killed)
			j.kill()
		})
		if over == nil {
			select {
			case <-killed:
			case <-ctx.Done():
			}
		}
		err = j.awaitEnd(ctx)
	}
	if err != nil {
		return fmt.Errorf("kill %s: %w", j.id, err)
	}
	return nil
}

// kill ends what runs of the job. Its command may have ended: then only LogTo keeps the job from
// ending.
func (j *job) kill() {
	j.s.mu.Lock()
	sh := j.s.sh
	if c := j.s.cmd; c != nil {
		c.limitWriters()
	}
	j.s.mu.Unlock()
	select {
	case <-sh.exited: // its id may be another process's
	default:
		j.box.terminate(without(j.box.tree(sh.pid), sh.pid), j.box.opts.Grace)
	}
	j.box.killMarked(j.box.markOf(j.id))
}

// Forget implements sandbox.Job.
func (j *job) Forget() error {
	select {
	case <-j.done:
	default:
		return fmt.Errorf("forget %s: it is still running: %w", j.id, sandbox.ErrBusy)
	}
	if kept, ok := j.s.sh.proc.(hostapi.Forgetter); ok {
		ctx, cancel := context.WithTimeout(context.Background(), questionLimit)
		defer cancel()
		err := kept.Forget(ctx)
		if err != nil && !errors.Is(err, sandbox.ErrClosed) && !errors.Is(err, sandbox.ErrLost) {
			return fmt.Errorf("forget %s: %w", j.id, err)
		}
	}
	j.box.mu.Lock()
	j.box.jobs = slices.DeleteFunc(j.box.jobs, func(other *job) bool { return other == j })
	j.box.mu.Unlock()
	j.spool.Close()
	return nil
}

// Wait implements sandbox.Job.
func (j *job) Wait(ctx context.Context) (*sandbox.Result, error) {
	r, err := j.wait(ctx)
	if err != nil {
		err = fmt.Errorf("wait for %s: %w", j.id, err)
	}
	return r, err
}

func (j *job) wait(ctx context.Context) (*sandbox.Result, error) {
	if err := j.awaitEnd(ctx); err != nil {
		return nil, err
	}
	r := *j.result
	p, err := j.spool.Text()
	if err != nil {
		return nil, err
	}
	return p.Fill(&r), j.logErr
}

// awaitEnd waits for the job's end.
func (j *job) awaitEnd(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}

// release frees the spool when the job's goroutine has ended, which ends with the session.
func (j *job) release() {
	<-j.done
	j.spool.Close()
}
