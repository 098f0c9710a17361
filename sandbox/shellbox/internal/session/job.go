package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
)

// A Job is a command in a session of its own, on the session's terminal or on pipes. Its output
// goes to spools. It implements sandbox.Job, and may be used when it has begun.
type Job struct {
	command string
	session *Session
	cmd     *command
	spool   *output.Spool
	errors  *output.Spool // of a job on pipes: its standard error; else nothing comes
	done    chan struct{}
	kept    bool            // cmd keeps its output, for Until; session.mu guards it
	result  *sandbox.Result // when done
	err     error           // when done: the box was closed or lost
	logErr  error           // when done: what is lost to LogTo
}

// NewJob returns a job for New to make a session for. maxLog is as in sandbox.SessionOptions.
func NewJob(command string, maxLog int64) *Job {
	return &Job{command: command, spool: output.NewSpool(maxLog), errors: output.NewSpool(maxLog),
		done: make(chan struct{})}
}

// Begin begins the job's command in its session, which has started. If Begin fails, it closes the
// session. No call waits for the command, so nothing looks whether it waits.
func (j *Job) Begin(logTo []io.Writer) error {
	s := j.session
	j.newCommand()
	s.mu.Lock()
	err := s.err
	if !s.opts.Pipes {
		err = s.beginLocked(context.Background(), j.cmd, sandbox.ExecOptions{Follow: logTo})
	} else if err == nil {
		j.cmd.follow(logTo)
		s.beginOnPipesLocked(j.cmd, "command started")
	}
	s.mu.Unlock()
	if err != nil {
		s.Close()
		j.closeSpools()
		return err
	}
	go j.run()
	return nil
}

func (j *Job) newCommand() {
	j.cmd = newCommand(j.command, true)
	j.cmd.spool = j.spool
}

// run waits for the job's end.
func (j *Job) run() {
	defer close(j.done)
	s, c := j.session, j.cmd
	select {
	case <-c.done:
	case <-s.ended:
	}
	s.mu.Lock()
	if c.phase >= phase.Ended && c.result != nil {
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

// HasEnded reports whether Done is closed.
func (j *Job) HasEnded() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// ID implements sandbox.Job.
func (j *Job) ID() string { return j.session.id }

// Command implements sandbox.Job.
func (j *Job) Command() string { return j.command }

// Done implements sandbox.Job.
func (j *Job) Done() <-chan struct{} { return j.done }

// ShellPID returns the process id of the job's shell.
func (j *Job) ShellPID() int {
	j.session.mu.Lock()
	defer j.session.mu.Unlock()
	return j.session.sh.pid
}

// check returns why a call cannot reach the job. After the job's end that is os.ErrProcessDone.
func (j *Job) check(ctx context.Context) error {
	if j.session.endErr() != nil { // the job's own end is a moment later
		<-j.done
	}
	select {
	case <-j.done:
		return cmp.Or(j.err, os.ErrProcessDone)
	default:
		return CheckContext(ctx)
	}
}

const logsMax = 1 << 20

// Logs implements sandbox.Job.
func (j *Job) Logs(ctx context.Context, offset int64) ([]byte, int64, error) {
	data, next, err := j.spool.Read(offset, logsMax)
	if err == nil {
		err = CheckContext(ctx)
	}
	if err != nil {
		return nil, offset, fmt.Errorf("logs of %s: %w", j.session.id, err)
	}
	return data, next, nil
}

// Input implements sandbox.Job.
func (j *Job) Input(ctx context.Context, text string) error {
	err := j.check(ctx)
	if errors.Is(err, os.ErrProcessDone) {
		err = sandbox.ErrIdle
	}
	if err != nil {
		return fmt.Errorf("input to %s: %w", j.session.id, err)
	}
	if j.session.opts.Pipes {
		return j.writeInput(ctx, text)
	}
	j.session.mu.Lock()
	defer j.session.mu.Unlock()
	j.session.typeLocked(text)
	return nil
}

// Signal implements sandbox.Job.
func (j *Job) Signal(ctx context.Context, sig syscall.Signal) error {
	err := j.check(ctx)
	if err == nil {
		err = j.signal(ctx, proc.Signal(strconv.Itoa(int(sig))))
	}
	if err != nil {
		return fmt.Errorf("signal %v to %s: %w", sig, j.session.id, err)
	}
	return nil
}

// signal signals the foreground of the job's terminal. The job's command may have ended, see kill.
func (j *Job) signal(ctx context.Context, sig proc.Signal) error {
	if j.session.opts.Pipes {
		return j.signalGroup(sig)
	}
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
	f, err := j.session.box.Processes.SignalForeground(sh.pid, bash, sig)
	if err == nil {
		j.session.spawn(func() { f.Follow(sh.exited) }) // if the job has ended, nothing is left
	}
	return err
}

// awaitBegin waits until the shell has begun the job's command. Before, there is no process of the
// command, and the shell ignores most signals.
func (j *Job) awaitBegin(ctx context.Context) error {
	for s, c := j.session, j.cmd; ; {
		s.mu.Lock()
		waits := c.phase.ToBegin()
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
func (j *Job) Kill(ctx context.Context) error {
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
		return fmt.Errorf("kill %s: %w", j.session.id, err)
	}
	return nil
}

// kill ends what runs of the job. Its command may have ended: then only LogTo keeps the job from
// ending.
func (j *Job) kill() {
	j.session.mu.Lock()
	sh := j.session.sh
	if c := j.session.cmd; c != nil {
		c.limitWriters()
	}
	j.session.mu.Unlock()
	select {
	case <-sh.exited: // its id may be another process's
	default:
		if b := j.session.box; j.session.opts.Pipes {
			b.Processes.Terminate(b.Processes.Tree(sh.pid), b.Grace)
		} else {
			b.Processes.EndDescendants(sh.pid, b.Grace)
		}
	}
	j.session.box.Processes.KillMarked(j.session.box.Env.MarkOf(j.session.id))
}

// Forget has the host forget the job, which has ended. The caller releases the job then.
func (j *Job) Forget() error {
	select {
	case <-j.done:
	default:
		return fmt.Errorf("forget %s: it is still running: %w", j.session.id, sandbox.ErrBusy)
	}
	if kept, ok := j.session.sh.proc.(hostapi.Forgetter); ok {
		ctx, cancel := context.WithTimeout(context.Background(), processes.QuestionLimit)
		defer cancel()
		err := kept.Forget(ctx)
		if err != nil && !errors.Is(err, sandbox.ErrClosed) && !errors.Is(err, sandbox.ErrLost) {
			return fmt.Errorf("forget %s: %w", j.session.id, err)
		}
	}
	return nil
}

// Wait implements sandbox.Job.
func (j *Job) Wait(ctx context.Context) (*sandbox.Result, error) {
	r, err := j.wait(ctx)
	if err != nil {
		err = fmt.Errorf("wait for %s: %w", j.session.id, err)
	}
	return r, err
}

func (j *Job) wait(ctx context.Context) (*sandbox.Result, error) {
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
func (j *Job) awaitEnd(ctx context.Context) error {
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

// Close ends the job with its session, and releases it.
func (j *Job) Close() {
	j.session.Close()
	j.Release()
}

// Release frees the spools when the job has ended. A job ends with its session. After Release,
// calls that read the output return sandbox.ErrClosed.
func (j *Job) Release() {
	<-j.done
	j.closeSpools()
}

func (j *Job) closeSpools() {
	j.spool.Close()
	j.errors.Close()
}
