package shellbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
)

// A job is a command in a session of its own. Its output goes to a spool.
type job struct {
	box     *Box
	id      string
	command string
	session *session
	cmd     *command
	spool   *output.Spool
	done    chan struct{}
	kept    bool            // cmd keeps its output, for Until; session.mu guards it
	listed  bool            // the host has listed it; box.mu guards it
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
	j := &job{box: b, command: command, spool: output.NewSpool(opts.MaxLog),
		done: make(chan struct{})}
	var err error
	for j.session == nil {
		j.id = b.newID("job")
		j.session, err = b.open(ctx, j.id, j, opts)
		if err != nil && !b.isTaken("job", err) {
			return nil, err
		}
	}
	j.cmd = newCommand(command, true)
	j.cmd.spool = j.spool
	// here: a Kill from now on finds it begun
	err = j.begin(opts.LogTo)
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
		j.session.Close()
		j.spool.Close()
		return nil, err
	}
	go j.run()
	return j, nil
}

// begin begins the job's command. No call waits for it, so nothing looks whether it waits.
func (j *job) begin(logTo []io.Writer) error {
	j.session.mu.Lock()
	defer j.session.mu.Unlock()
	return j.session.beginLocked(context.Background(), j.cmd, sandbox.ExecOptions{Follow: logTo})
}

// run waits for the job's end.
func (j *job) run() {
	defer close(j.done)
	s, c := j.session, j.cmd
	select {
	case <-c.done:
	case <-s.ended:
	}
	s.mu.Lock()
	if c.phase >= ended && c.result != nil {
		r := *c.result
		r.FullScreen = c.out.FullScreen()
		j.result = &r
	} else {
		j.err = cmp.Or(s.err, errNotRun)
	}
	s.mu.Unlock()
	w := &call{s: s, c: c}
	for _, t := range c.follows {
		w.pending = append(w.pending, t.Mark())
	}
	j.logErr = w.drain(context.Background())
	if j.result != nil {
		j.result.OOM = j.result.OOM || s.oomKilled(c)
	}
	if j.result != nil || j.err == errNotRun {
		s.hangup()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen = terminal.NewTail(0) // the job is remembered long after its end
}

// errNotRun is the error of a job that a call of Until has killed before it began.
var errNotRun = errors.New("the job was killed before its shell ran it")

// Job implements sandbox.Sandbox. If other programs use the box too, Job asks the host for a job
// that they have begun, and whether they have forgotten one that has ended.
func (b *Box) Job(id string) (sandbox.Job, bool) {
	if j := b.knownJob(id); j != nil && !j.hasEnded() {
		return j, true
	}
	b.lookAround()
	if j := b.knownJob(id); j != nil {
		return j, true
	}
	return nil, false
}

func (j *job) hasEnded() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

func (b *Box) knownJob(id string) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range b.jobs {
		if j.id == id {
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

func (j *job) ID() string            { return j.id }
func (j *job) Command() string       { return j.command }
func (j *job) Done() <-chan struct{} { return j.done }

// check returns why a call cannot reach the job. After the job's end that is os.ErrProcessDone.
func (j *job) check(ctx context.Context) error {
	if j.session.endErr() != nil { // the job's own end is a moment later
		<-j.done
	}
	select {
	case <-j.done:
		return cmp.Or(j.err, os.ErrProcessDone)
	default:
		return checkContext(ctx)
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
	err := j.check(ctx)
	if errors.Is(err, os.ErrProcessDone) {
		err = sandbox.ErrIdle
	}
	if err != nil {
		return fmt.Errorf("input to %s: %w", j.id, err)
	}
	j.session.mu.Lock()
	defer j.session.mu.Unlock()
	j.session.typeLocked(text)
	return nil
}

// Signal implements sandbox.Job.
func (j *job) Signal(ctx context.Context, sig syscall.Signal) error {
	err := j.check(ctx)
	if err == nil {
		err = j.signal(ctx, proc.Signal(strconv.Itoa(int(sig))))
	}
	if err != nil {
		return fmt.Errorf("signal %v to %s: %w", sig, j.id, err)
	}
	return nil
}

// signal signals the foreground of the job's terminal. The job's command may have ended, see kill.
func (j *job) signal(ctx context.Context, sig proc.Signal) error {
	j.session.mu.Lock()
	sh := j.session.sh
	bash := sh.dialect.Bash
	j.session.mu.Unlock()
	if err := j.awaitBegin(ctx); err != nil {
		return err
	}
	select {
	case <-sh.exited: // its id may be another process's
		return os.ErrProcessDone
	default:
	}
	f, err := j.box.processes.SignalForeground(sh.pid, bash, sig)
	if err == nil {
		j.session.spawn(func() { f.Follow(sh.exited) }) // if the job has ended, nothing is left
	}
	return err
}

// awaitBegin waits until the shell has begun the job's command. Before, there is no process of the
// command, and the shell ignores most signals.
func (j *job) awaitBegin(ctx context.Context) error {
	for s, c := j.session, j.cmd; ; {
		s.mu.Lock()
		waits := c.phase == queued || c.phase == sent
		begun, changed := c.begun.Wait(), c.changed.Wait()
		s.mu.Unlock()
		if !waits {
			return nil
		}
		select {
		case <-begun:
		case <-changed:
		case <-s.ended:
			return os.ErrProcessDone
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
	}
}

// Kill implements sandbox.Job.
func (j *job) Kill(ctx context.Context) error {
	err := j.check(ctx)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err == nil {
		killed := make(chan struct{})
		over := j.session.spawn(func() { // the session's: it goes on when ctx has ended
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
	j.session.mu.Lock()
	sh := j.session.sh
	if c := j.session.cmd; c != nil {
		c.limitWriters()
	}
	j.session.mu.Unlock()
	select {
	case <-sh.exited: // its id may be another process's
	default:
		j.box.processes.EndDescendants(sh.pid, j.box.opts.Grace)
	}
	j.box.processes.KillMarked(j.box.markOf(j.id))
}

// Forget implements sandbox.Job.
func (j *job) Forget() error {
	select {
	case <-j.done:
	default:
		return fmt.Errorf("forget %s: it is still running: %w", j.id, sandbox.ErrBusy)
	}
	if kept, ok := j.session.sh.proc.(hostapi.Forgetter); ok {
		ctx, cancel := context.WithTimeout(context.Background(), processes.QuestionLimit)
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
	j.session.mu.Lock()
	rows, cols := j.session.rows, j.session.cols
	j.session.mu.Unlock()
	p, err := j.spool.Text(rows, cols)
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
