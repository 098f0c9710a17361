package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/recording"
)

// Times are how long the parts of a task took, in seconds.
type Times struct {
	// Reference is the time of the reference solution that Check.Like compares with, with its box,
	// if it ran for this sample: see Config.References.
	Reference float64 `json:"reference,omitempty"`
	Box       float64 `json:"box"` // the wait for the box
	Setup     float64 `json:"setup"`
	Agent     float64 `json:"agent"`
	Check     float64 `json:"check"`
}

// An attempt is one attempt at a task.
type attempt struct {
	run       *runner
	ahead     *aheadTask
	task      Task
	log       *taskLog
	cast      string // the path of the recording
	times     Times
	trial     *Trial             // nil until the agent is called
	collected int                // files
	points    map[string]float64 // the check's scores
	waits     bool               // a command was waiting for an answer when the agent ended
}

// timed adds the time until stop is called to seconds.
func timed(seconds *float64) (stop func()) {
	began := time.Now()
	return func() { *seconds += time.Since(began).Seconds() }
}

func (t *attempt) logf(format string, args ...any) {
	fmt.Fprintf(t.log, "--- "+format+"\n", args...)
}

// do attempts the task. If ctx ends first, the verdict says nothing about the task.
func (t *attempt) do(ctx context.Context) verdict {
	os.RemoveAll(t.filesDir())      // of the attempt before
	if len(t.task.Check.Like) > 0 { // before the agent's box, so that a task never has two boxes
		if failed := t.needReference(ctx); failed != nil {
			return *failed
		}
	}
	t.ahead.egress.attemptBegins()
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
	t.collect(ctx, w)
	if !judged {
		var oomInCheck bool
		v, oomInCheck = t.check(ctx, &w)
		oom = oom || oomInCheck
	}
	if oom && (v.Status == Fail || v.Status == Error || v.Status == Broken) {
		v = verdictOf(OOM, "the kernel killed a process because the box's memory was used up; %s",
			v.reason)
	}
	return v
}

// newWorkspace makes a box with the task's files, and runs the task's setup in it, unless the box
// can begin with what another sample has set up. It adds the times of both to making and setup.
func (t *attempt) newWorkspace(ctx context.Context, making, setup *float64) (*workspace, *verdict) {
	stop := timed(making)
	shared := t.ahead.setup
	snapshot, lead, err := shared.begin(ctx)
	if err != nil {
		return nil, &verdict{Lost, err.Error()} // ctx has ended
	}
	made := ""
	if lead {
		defer func() { shared.finish(made) }()
	}
	box, from, err := t.ahead.box(ctx, t.run, snapshot)
	if from != "" && err != nil && ctx.Err() == nil {
		t.logf("the setup runs again, because a box of its snapshot is not possible: %v", err)
		shared.forget(from, err)
		box, from, err = t.ahead.box(ctx, t.run, "")
	}
	stop()
	if err != nil {
		v := verdictOfCreation(err)
		return nil, &v
	}
	defer timed(setup)()
	if from != "" {
		t.logf("begin with the files and the setup of another sample")
		w, err := openWorkspace(ctx, box, &t.task)
		if err != nil {
			t.close(box)
			return nil, verdictOfSetup(err)
		}
		return w, nil
	}
	if why := shared.reason(); why != "" {
		t.logf("each sample runs the setup, because %s", why)
	}
	w, failed := t.setUp(ctx, box)
	switch {
	case failed != nil:
		t.close(box)
	case lead:
		made = t.snapshot(ctx, box)
	}
	return w, failed
}

// An asUser is a box that can be another user's sandbox.
type asUser interface {
	AsUser(context.Context, string, ...sandbox.SessionOption) (sandbox.Sandbox, error)
}

// agentsBox returns the box as the agent gets it: recorded, and as the agent's user.
func (t *attempt) agentsBox(ctx context.Context, w *workspace) (*recorded, *verdict) {
	box := w.Sandbox
	var userBox sandbox.Sandbox
	if name := t.task.AgentUser; name != "" {
		err := fmt.Errorf("%w by this kind of box", errors.ErrUnsupported)
		if of, ok := sandbox.As[asUser](box); ok {
			userBox, err = of.AsUser(ctx, name, sandbox.Dir(w.dir))
		}
		if err != nil {
			v, ok := verdictOfBox(err)
			if !ok {
				v = verdictOf(Broken, "the agent's user: %v", err)
			}
			return nil, &v
		}
		box = userBox
	}
	rec, err := t.record(box)
	if err != nil {
		if userBox != nil {
			t.close(userBox)
		}
		v := verdictOf(Lost, "create the recording: %v", err)
		return nil, &v
	}
	return rec, nil
}

// A recorded is a box whose Close also closes the file of its recording, once.
type recorded struct {
	*recording.Box
	close func() error
}

// record returns the box with a recording of what is done in it.
func (t *attempt) record(box sandbox.Sandbox) (*recorded, error) {
	f, err := createBounded(t.cast, castMax)
	if err != nil {
		return nil, err
	}
	rec := recording.New(box, f)
	return &recorded{rec, sync.OnceValue(func() error {
		return errors.Join(rec.Close(), f.Close())
	})}, nil
}

// Unwrap lets sandbox.As find the box.
func (r *recorded) Unwrap() sandbox.Sandbox { return r.Box }

// Close closes the box. It is called twice if the agent does not return in time.
func (r *recorded) Close() error { return r.close() }

func (t *attempt) close(box io.Closer) {
	if err := box.Close(); err != nil {
		t.logf("close the box: %v", err)
	}
}

// setUp puts the task's files into a new box, and runs the task's setup.
func (t *attempt) setUp(ctx context.Context, box sandbox.Sandbox) (*workspace, *verdict) {
	limit := t.task.Limits.Setup
	ctx, cancel := ctxerr.WithLimit(ctx, limit, tooLong(limit))
	defer cancel()
	w, err := openWorkspace(ctx, box, &t.task)
	if err == nil && t.task.Dir != "" {
		err = w.Files().MkdirAll(ctx, t.task.Dir, 0o755)
	}
	if err == nil {
		err = w.putFiles(ctx, t.task.Files)
	}
	if err == nil && t.task.Setup != "" {
		t.logf("setup")
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
	return nil, verdictOfSetup(err)
}

func verdictOfSetup(err error) *verdict {
	if v, ok := verdictOfBox(err); ok && v.Status == Lost {
		return &v
	}
	v := verdictOf(Broken, "setup: %v", err)
	return &v
}

// tooLong returns the error of a step that takes longer than its limit.
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
func (t *attempt) runAgent(ctx context.Context, w *workspace, box sandbox.Sandbox) (v verdict,
	judged, oom bool) {
	defer timed(&t.times.Agent)()
	t.logf("agent")
	limit := t.task.Limits.Time
	bounded, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("the agent had not returned after %s", durationText(limit)))
	defer cancel()
	killed := watchMemory(bounded, w)
	t.trial = &Trial{Box: box, Task: t.task, Sample: t.ahead.sample, Log: t.log}
	err := t.callAgent(bounded)
	t.waits = waits(ctx, box)
	v, judged = verdictOfAgent(bounded, err, t.waits)
	return v, judged, killed()
}

// agentGrace is how long an agent may take to return after the end of its ctx. The commands that
// its box then kills need some seconds to end.
const agentGrace = 20 * time.Second

// callAgent calls the agent. If the agent does not return after the end of ctx, callAgent closes
// its box.
func (t *attempt) callAgent(ctx context.Context) error {
	done := guard.Go("the agent", func() error { return t.run.cfg.Agent(ctx, t.trial) })
	logPanic := func(err error) error {
		var panicked *guard.PanicError
		if errors.As(err, &panicked) {
			t.logf("%v\n%s", err, panicked.Stack)
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
		t.logf("the agent has not returned %v after its time was over: its box is closed, and it "+
			"is waited for", agentGrace)
		t.run.progress.late(sampleID{t.task.ID, t.trial.Sample}.String())
		t.trial.Box.Close()
		return logPanic(<-done)
	}
}

// watchMemory watches, until killed is called, whether the kernel kills a program of the box
// because memory is used up. A box reports such a kill only for a program that runs at that time.
// So watchMemory runs one, which prints a line and waits for the end of its input.
func watchMemory(ctx context.Context, w *workspace) (killed func() bool) {
	stdin, end := io.Pipe()
	output, stdout := io.Pipe()
	var oom bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The error does not matter: a box that is lost says so elsewhere.
		w.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "echo; read nothing"}, Stdin: stdin,
			Stdout: stdout, OOM: &oom})
		stdin.Close()
		stdout.Close()
	}()
	output.Read(make([]byte, 1)) // until the program runs
	output.Close()
	return func() bool {
		end.Close()
		<-done
		return oom
	}
}

// waitsLimit bounds how long waits watches a command that goes on when the agent has ended.
const waitsLimit = 5 * time.Second

// waits reports whether the main session's command waits for an answer. It returns at once if it
// does, or if there is no command. A command that may go on by itself does not count.
func waits(ctx context.Context, box sandbox.Session) bool {
	r, err := box.Wait(ctx, sandbox.Yield(waitsLimit), sandbox.Patience(-1))
	return err == nil && r.State == sandbox.Waiting
}
