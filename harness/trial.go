package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sandshell/sandshell/internal/shellquote"
	"github.com/sandshell/sandshell/sandbox"
)

// Times are how long the parts of a task have taken, in seconds.
type Times struct {
	Box   float64 `json:"box"` // to get one: what of making it, image included, the task has waited for
	Setup float64 `json:"setup"`
	Agent float64 `json:"agent"`
	Check float64 `json:"check"`
}

// A trial is one attempt at a task.
type trial struct {
	*runner
	*start
	cast  string // the recording's path
	times Times
	waits bool // a command waited for an answer when the agent ended
}

// timed notes how long something takes.
func timed(seconds *float64) (stop func()) {
	began := time.Now()
	return func() { *seconds += time.Since(began).Seconds() }
}

func (t *trial) say(format string, args ...any) { fmt.Fprintf(t.log, "--- "+format+"\n", args...) }

// run attempts the task. The end of ctx is the end of all, and the verdict nobody's.
func (t *trial) run(ctx context.Context) verdict {
	stop := timed(&t.times.Box)
	var want []string
	if len(t.task.Check.Like) > 0 { // before the agent's box, so that a task never has two
		var failed *verdict
		if want, failed = t.reference(ctx); failed != nil {
			return *failed
		}
	}
	box, err := t.box(ctx, t.runner)
	stop()
	if err != nil {
		return notMade(err)
	}
	defer t.close(box)
	p, failed := t.prepare(ctx, box)
	if failed != nil {
		return *failed
	}
	recording, err := t.record(box)
	if err != nil {
		return verdictOf(Error, "record: %v", err)
	}
	defer t.close(recording)
	p.Sandbox = recording
	v, judged, oom := t.agent(ctx, p)
	if !judged {
		var also bool
		v, also = t.check(ctx, p, want)
		oom = oom || also
	}
	if oom && (v.Status == Fail || v.Status == Error) {
		v = verdictOf(OOM, "the kernel killed a process because the box's memory was used up; %s", v.reason)
	}
	return v
}

// A recorded box closes its file behind it.
type recorded struct {
	*sandbox.Recording
	file *boundedFile
}

// record records what the agent does.
func (t *trial) record(box sandbox.Sandbox) (*recorded, error) {
	f, err := createBounded(t.cast, castMax)
	if err != nil {
		return nil, err
	}
	return &recorded{sandbox.Record(box, f), f}, nil
}

// Unwrap makes sandbox.As find the box.
func (r *recorded) Unwrap() sandbox.Sandbox { return r.Recording }

func (r *recorded) Close() error { return errors.Join(r.Recording.Close(), r.file.Close()) }

func (t *trial) close(box io.Closer) {
	if err := box.Close(); err != nil {
		t.say("close the box: %v", err)
	}
}

// prepare puts the task's files into a new box, and runs its setup.
func (t *trial) prepare(ctx context.Context, box sandbox.Sandbox) (*place, *verdict) {
	defer timed(&t.times.Setup)()
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	p, err := placeOf(ctx, box, &t.task)
	if err == nil && t.task.Dir != "" {
		err = p.must(ctx, "", `mkdir -p "$1"`, t.task.Dir)
	}
	if err == nil {
		err = p.put(ctx, t.task.Files)
	}
	if err == nil && t.task.Setup != "" {
		t.say("setup")
		err = t.setup(ctx, p, Script{Command: t.task.Setup})
	}
	if err == nil && t.task.Dir != "" { // the image need not have had it when the session began
		err = enter(ctx, box, t.task.Dir)
	}
	if err == nil {
		return p, nil
	}
	if v, ok := ofBox(err); ok && v.Status == Lost {
		return nil, &v
	}
	v := verdictOf(Error, "setup: %v", err)
	return nil, &v
}

// setup runs a script that has to succeed.
func (t *trial) setup(ctx context.Context, p *place, s Script) error {
	code, oom, err := p.script(ctx, s, t.log)
	switch {
	case err != nil:
		return err
	case code != 0 && oom:
		return fmt.Errorf("exit status %d, when memory was used up", code)
	case code != 0:
		return fmt.Errorf("exit status %d", code)
	}
	return nil
}

// enter changes the main session's directory.
func enter(ctx context.Context, box sandbox.Session, dir string) error {
	r, err := box.Execute(ctx, "cd -- "+shellquote.Quote(dir))
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("cd %s: exit status %d", dir, r.ExitCode)
	}
	return err
}

// reference finds out what Check.Like is compared with, in a box of its own.
func (t *trial) reference(ctx context.Context) ([]string, *verdict) {
	box, err := t.box(ctx, t.runner)
	if err != nil {
		v := notMade(err)
		return nil, &v
	}
	defer t.close(box)
	p, failed := t.prepare(ctx, box)
	if failed != nil {
		return nil, failed
	}
	t.say("the reference solution, in a box of its own")
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	// Some of nl2bash's gold commands have an exit status other than 0: grep that finds nothing.
	_, _, err = p.script(ctx, t.task.Solution, t.log)
	var list []string
	if err == nil {
		list, err = p.list(ctx, t.task.Check)
	}
	if err == nil {
		return list, nil
	}
	v, ok := ofBox(err)
	if !ok || v.Status != Lost {
		v = verdictOf(Error, "the reference solution: %v", err)
	}
	return nil, &v
}

// agent has the agent at work. If judged is false, the check is to decide.
func (t *trial) agent(ctx context.Context, p *place) (v verdict, judged, oom bool) {
	defer timed(&t.times.Agent)()
	t.say("agent")
	killed := watchMemory(ctx, p)
	bounded, cancel := context.WithTimeoutCause(ctx, t.task.Limits.Time, fmt.Errorf("the agent had not done it in %v", t.task.Limits.Time))
	defer cancel()
	err := t.call(context.WithValue(bounded, logKey{}, t.log), p)
	t.waits = waits(ctx, p)
	v, judged = ofAgent(bounded, err, t.waits)
	return v, judged, killed()
}

// agentGrace is how long an agent may take to return after the end of its ctx: what its box then kills has some seconds to end.
const agentGrace = 20 * time.Second

// call calls the agent, and takes the box away from one that does not heed its ctx.
func (t *trial) call(ctx context.Context, p *place) error {
	done := make(chan error, 1)
	go func() { done <- t.protected(ctx, p.Sandbox) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(agentGrace):
		p.Close()
		return <-done
	}
}

// protected makes an error of a panic.
func (t *trial) protected(ctx context.Context, box sandbox.Sandbox) (err error) {
	defer func() {
		if r := recover(); r != nil {
			t.say("the agent panicked: %v\n%s", r, debug.Stack())
			err = fmt.Errorf("the agent panicked: %v", r)
		}
	}()
	return t.Agent(ctx, box, t.task)
}

// watchMemory watches, until killed is called, whether the kernel kills in the box because memory is used up. The box tells it at the end of a program that has
// run all the while; this one says that it runs, and waits for the end of its input.
func watchMemory(ctx context.Context, p *place) (killed func() bool) {
	r, w := io.Pipe()
	said, says := io.Pipe()
	var oom bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "echo; read nothing"}, Stdin: r, Stdout: says, OOM: &oom}) // a box that is lost says so itself
		r.Close()
		says.Close()
	}()
	said.Read(make([]byte, 1))
	return func() bool {
		w.Close()
		<-done
		return oom
	}
}

// waitsLimit is for how long a command that runs on when its agent has ended is looked at.
const waitsLimit = 5 * time.Second

// waits reports whether the main session's command waits for an answer. If it does, or there is none, Wait returns at once.
func waits(ctx context.Context, p *place) bool {
	r, err := p.Wait(ctx, sandbox.Yield(waitsLimit))
	return err == nil && r.State == sandbox.Waiting
}

// check runs the check. oom says whether the kernel killed for memory meanwhile.
func (t *trial) check(ctx context.Context, p *place, want []string) (v verdict, oom bool) {
	defer timed(&t.times.Check)()
	t.say("check")
	limit := t.task.Check.Time
	if limit == 0 {
		limit = defaultCheckTime
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it had not ended after %v", limit))
	defer cancel()
	var err error
	if t.task.Check.Command != "" {
		var code int
		if code, oom, err = p.script(bounded, t.task.Check.Script, t.log); err == nil && code != 0 {
			err = fmt.Errorf("exit status %d", code)
		}
	}
	if err == nil && want != nil {
		var got []string
		if got, err = p.list(bounded, t.task.Check); err == nil {
			err = t.compare(want, got)
		}
	}
	switch judged, ok := ofBox(err); {
	case err == nil:
		return verdict{Pass, ""}, false
	case ok:
		return judged, oom
	case t.waits:
		return verdictOf(Stuck, "the agent ended while a command waited for an answer; check: %v", err), oom
	}
	return verdictOf(Fail, "check: %v", err), oom
}

// differencesMax is how many differences the log shows.
const differencesMax = 20

// compare compares two listings.
func (t *trial) compare(want, got []string) error {
	differences := 0
	tell := func(lines, others []string, what string) {
		for _, line := range lines {
			if _, found := slices.BinarySearch(others, line); found {
				continue
			}
			if differences++; differences <= differencesMax {
				t.say("%s: %q", what, line)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	tell(want, got, "the reference solution leaves")
	tell(got, want, "there is instead")
	if differences > 0 {
		return errors.New("the files are not as the reference solution leaves them: see the log")
	}
	return nil
}
