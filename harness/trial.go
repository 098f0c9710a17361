package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/recording"
)

// Times are how long the parts of a task took, in seconds.
type Times struct {
	// Reference is the time of the reference solution that Check.Like compares with, with its box.
	// The reference solution runs once, whatever the number of attempts.
	Reference float64 `json:"reference,omitempty"`
	Box       float64 `json:"box"` // the wait for the box
	Setup     float64 `json:"setup"`
	Agent     float64 `json:"agent"`
	Check     float64 `json:"check"`
}

// A trial is one attempt at a task.
type trial struct {
	run   *runner
	ahead *aheadTask
	task  Task
	log   *taskLog
	cast  string // the path of the recording
	times Times
	waits bool  // a command was waiting for an answer when the agent ended
	fatal error // why no task can be done; it ends the run
}

// timed adds the time until stop is called to seconds.
func timed(seconds *float64) (stop func()) {
	began := time.Now()
	return func() { *seconds += time.Since(began).Seconds() }
}

func (t *trial) say(format string, args ...any) { fmt.Fprintf(t.log, "--- "+format+"\n", args...) }

// attempt attempts the task. If ctx ends meanwhile, the verdict says nothing about the task.
func (t *trial) attempt(ctx context.Context) verdict {
	if len(t.task.Check.Like) > 0 { // before the agent's box, so that a task never has two boxes
		if failed := t.runReference(ctx); failed != nil {
			return *failed
		}
	}
	w, failed := t.newWorkspace(ctx, &t.times.Box, &t.times.Setup)
	if failed != nil {
		return *failed
	}
	defer func() { t.close(w) }()
	box, failed := t.agentsBox(ctx, w)
	if failed != nil {
		return *failed
	}
	defer t.close(box)
	v, judged, oom := t.runAgent(ctx, w, box)
	if !judged {
		var also bool
		v, also = t.check(ctx, &w)
		oom = oom || also
	}
	if oom && (v.Status == Fail || v.Status == Error) {
		v = verdictOf(OOM, "the kernel killed a process because the box's memory was used up; %s",
			v.reason)
	}
	return v
}

// newWorkspace makes a box with the task's files, and runs the task's setup in it. It adds the
// times of both to making and setup.
func (t *trial) newWorkspace(
	ctx context.Context, making, setup *float64,
) (*workspace, *verdict) {
	stop := timed(making)
	box, err := t.ahead.box(ctx, t.run)
	stop()
	if err != nil {
		v := notMade(err)
		return nil, &v
	}
	defer timed(setup)()
	w, failed := t.setUp(ctx, box)
	if failed != nil {
		t.close(box)
	}
	return w, failed
}

// An asUser is a box that can be another user's sandbox.
type asUser interface {
	AsUser(context.Context, string, ...sandbox.SessionOption) (sandbox.Sandbox, error)
}

// agentsBox returns the box as the agent gets it: recorded, and as the agent's user.
func (t *trial) agentsBox(ctx context.Context, w *workspace) (*recorded, *verdict) {
	box := w.Sandbox
	var users sandbox.Sandbox
	if name := t.task.AgentUser; name != "" {
		err := fmt.Errorf("%w by this kind of box", errors.ErrUnsupported)
		if of, ok := sandbox.As[asUser](box); ok {
			users, err = of.AsUser(ctx, name, sandbox.Dir(w.dir))
		}
		if err != nil {
			v, ok := ofBox(err)
			if !ok {
				v = verdictOf(Error, "the agent's user: %v", err)
			}
			return nil, &v
		}
		box = users
	}
	rec, err := t.record(box)
	if err != nil {
		if users != nil {
			t.close(users)
		}
		v := verdictOf(Error, "create the recording: %v", err)
		return nil, &v
	}
	return rec, nil
}

// A recorded is a box whose Close also closes the file of its recording.
type recorded struct {
	*recording.Box
	file *boundedFile
}

// record returns the box with a recording of what is done by it.
func (t *trial) record(box sandbox.Sandbox) (*recorded, error) {
	f, err := createBounded(t.cast, castMax)
	if err != nil {
		return nil, err
	}
	return &recorded{recording.New(box, f), f}, nil
}

// Unwrap lets sandbox.As find the box.
func (r *recorded) Unwrap() sandbox.Sandbox { return r.Box }

func (r *recorded) Close() error { return errors.Join(r.Box.Close(), r.file.Close()) }

func (t *trial) close(box io.Closer) {
	if err := box.Close(); err != nil {
		t.say("close the box: %v", err)
	}
}

// setUp puts the task's files into a new box, and runs the task's setup.
func (t *trial) setUp(ctx context.Context, box sandbox.Sandbox) (*workspace, *verdict) {
	limit := t.task.Limits.Setup
	ctx, cancel := ctxerr.WithLimit(ctx, limit, tooLong(limit))
	defer cancel()
	w, err := openWorkspace(ctx, box, &t.task)
	if err == nil && t.task.Dir != "" {
		err = w.Files().MkdirAll(ctx, t.task.Dir, 0o755)
	}
	if err == nil {
		err = w.put(ctx, t.task.Files)
	}
	if err == nil && t.task.Setup != "" {
		t.say("setup")
		var e scriptResult
		if e, err = w.script(ctx, Script{Command: t.task.Setup}, t.log); err == nil {
			err = e.err()
		}
	}
	if err == nil && t.task.Dir != "" { // it may not have existed when the main session began
		err = enter(ctx, box, t.task.Dir)
	}
	if err == nil {
		return w, nil
	}
	if v, ok := ofBox(err); ok && v.Status == Lost {
		return nil, &v
	}
	v := verdictOf(Error, "setup: %v", err)
	return nil, &v
}

// tooLong is the error of what takes longer than its limit.
func tooLong(limit time.Duration) error {
	return fmt.Errorf("it took longer than %s", durationText(limit))
}

// durationText formats a duration without zero seconds and minutes at its end: 10m, not 10m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// enter changes the main session's directory.
func enter(ctx context.Context, box sandbox.Session, dir string) error {
	r, err := box.Execute(ctx, "cd -- "+shellquote.Quote(dir))
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("cd %s: exit status %d", dir, r.ExitCode)
	}
	return err
}

// runAgent runs the agent. If judged is false, the check decides.
func (t *trial) runAgent(
	ctx context.Context, w *workspace, box sandbox.Sandbox,
) (v verdict, judged, oom bool) {
	defer timed(&t.times.Agent)()
	t.say("agent")
	limit := t.task.Limits.Time
	bounded, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("the agent had not returned after %s", durationText(limit)))
	defer cancel()
	killed := watchMemory(bounded, w)
	err := t.callAgent(context.WithValue(bounded, logKey{}, t.log), box)
	var none *noProgramError
	if errors.As(err, &none) {
		t.fatal = err
	}
	t.waits = waits(ctx, box)
	v, judged = ofAgent(bounded, err, t.waits)
	return v, judged, killed()
}

// agentGrace is how long an agent may take to return after the end of its ctx. The commands that
// its box then kills need some seconds to end.
const agentGrace = 20 * time.Second

// callAgent calls the agent. If the agent does not return after the end of ctx, callAgent closes
// its box.
func (t *trial) callAgent(ctx context.Context, box sandbox.Sandbox) error {
	done := guard.Go("the agent", func() error { return t.run.cfg.Agent(ctx, box, t.task) })
	logPanic := func(err error) error {
		var panicked *guard.PanicError
		if errors.As(err, &panicked) {
			t.say("%v\n%s", err, panicked.Stack)
		}
		return err
	}
	select {
	case err := <-done:
		return logPanic(err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return logPanic(err)
	case <-time.After(agentGrace):
		box.Close()
		return logPanic(<-done)
	}
}

// watchMemory watches, until killed is called, whether the kernel kills a program of the box
// because memory is used up. The box reports that for a program that was running then, so
// watchMemory runs one: it says that it runs, and waits for the end of its input.
func watchMemory(ctx context.Context, w *workspace) (killed func() bool) {
	stdin, end := io.Pipe()
	said, says := io.Pipe()
	var oom bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The error does not matter: a box that is lost says so elsewhere.
		w.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "echo; read nothing"}, Stdin: stdin,
			Stdout: says, OOM: &oom})
		stdin.Close()
		says.Close()
	}()
	said.Read(make([]byte, 1)) // until it runs
	said.Close()
	return func() bool {
		end.Close()
		<-done
		return oom
	}
}

// waitsLimit is how long waits looks at a command that goes on when the agent has ended.
const waitsLimit = 5 * time.Second

// waits reports whether the main session's command waits for an answer. Wait returns at once if it
// does, and if there is no command.
func waits(ctx context.Context, box sandbox.Session) bool {
	r, err := box.Wait(ctx, sandbox.Yield(waitsLimit))
	return err == nil && r.State == sandbox.Waiting
}
