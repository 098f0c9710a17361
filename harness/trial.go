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

// Times are how long the parts of a task have taken, in seconds.
type Times struct {
	// Reference is what the reference solution has taken that Check.Like compares with, its box
	// included. It is made once, whatever the number of attempts.
	Reference float64 `json:"reference,omitempty"`
	Box       float64 `json:"box"` // to get one: what of making it the task has waited for
	Setup     float64 `json:"setup"`
	Agent     float64 `json:"agent"`
	Check     float64 `json:"check"`
}

// A trial is one attempt at a task.
type trial struct {
	*runner
	*start
	cast  string // the recording's path
	times Times
	waits bool  // a command waited for an answer when the agent ended
	fatal error // no task can be done
}

// timed notes how long something takes.
func timed(seconds *float64) (stop func()) {
	began := time.Now()
	return func() { *seconds += time.Since(began).Seconds() }
}

func (t *trial) say(format string, args ...any) { fmt.Fprintf(t.log, "--- "+format+"\n", args...) }

// run attempts the task. The end of ctx is the end of all, and the verdict nobody's.
func (t *trial) run(ctx context.Context) verdict {
	if len(t.task.Check.Like) > 0 { // before the agent's box, so that a task never has two
		if failed := t.reference(ctx); failed != nil {
			return *failed
		}
	}
	p, failed := t.place(ctx, &t.times.Box, &t.times.Setup)
	if failed != nil {
		return *failed
	}
	defer func() { t.close(p) }()
	box, failed := t.agentsBox(ctx, p)
	if failed != nil {
		return *failed
	}
	defer t.close(box)
	v, judged, oom := t.agent(ctx, p, box)
	if !judged {
		var also bool
		v, also = t.check(ctx, &p)
		oom = oom || also
	}
	if oom && (v.Status == Fail || v.Status == Error) {
		v = verdictOf(OOM, "the kernel killed a process because the box's memory was used up; %s",
			v.reason)
	}
	return v
}

// place makes a box as the task wants it.
func (t *trial) place(ctx context.Context, making, setup *float64) (*place, *verdict) {
	stop := timed(making)
	box, err := t.box(ctx, t.runner)
	stop()
	if err != nil {
		v := notMade(err)
		return nil, &v
	}
	defer timed(setup)()
	p, failed := t.prepare(ctx, box)
	if failed != nil {
		t.close(box)
	}
	return p, failed
}

// An asUser is a box that can be another user's sandbox.
type asUser interface {
	AsUser(context.Context, string, ...sandbox.SessionOption) (sandbox.Sandbox, error)
}

// agentsBox is the box as the agent gets it: recorded, and of the agent's user.
func (t *trial) agentsBox(ctx context.Context, p *place) (*recorded, *verdict) {
	box := p.Sandbox
	var users sandbox.Sandbox
	if name := t.task.AgentUser; name != "" {
		err := fmt.Errorf("%w by this kind of box", errors.ErrUnsupported)
		if of, ok := sandbox.As[asUser](box); ok {
			users, err = of.AsUser(ctx, name, sandbox.Dir(p.dir))
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
		v := verdictOf(Error, "record: %v", err)
		return nil, &v
	}
	return rec, nil
}

// A recorded box closes its file behind it.
type recorded struct {
	*recording.Box
	file *boundedFile
}

// record records what the agent does.
func (t *trial) record(box sandbox.Sandbox) (*recorded, error) {
	f, err := createBounded(t.cast, castMax)
	if err != nil {
		return nil, err
	}
	return &recorded{recording.New(box, f), f}, nil
}

// Unwrap makes sandbox.As find the box.
func (r *recorded) Unwrap() sandbox.Sandbox { return r.Box }

func (r *recorded) Close() error { return errors.Join(r.Box.Close(), r.file.Close()) }

func (t *trial) close(box io.Closer) {
	if err := box.Close(); err != nil {
		t.say("close the box: %v", err)
	}
}

// prepare puts the task's files into a new box, and runs its setup.
func (t *trial) prepare(ctx context.Context, box sandbox.Sandbox) (*place, *verdict) {
	limit := t.task.Limits.Setup
	ctx, cancel := ctxerr.WithLimit(ctx, limit, tooLong(limit))
	defer cancel()
	p, err := placeOf(ctx, box, &t.task)
	if err == nil && t.task.Dir != "" {
		err = p.Files().MkdirAll(ctx, t.task.Dir, 0o755)
	}
	if err == nil {
		err = p.put(ctx, t.task.Files)
	}
	if err == nil && t.task.Setup != "" {
		t.say("setup")
		var e ended
		if e, err = p.script(ctx, Script{Command: t.task.Setup}, t.log); err == nil {
			err = e.err()
		}
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

// tooLong is why something ends that takes longer than its limit.
func tooLong(limit time.Duration) error {
	return fmt.Errorf("it took longer than %s", durationText(limit))
}

// durationText is 10m, where a Duration's String is 10m0s.
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

// agent has the agent at work. If judged is false, the check is to decide.
func (t *trial) agent(
	ctx context.Context, p *place, box sandbox.Sandbox,
) (v verdict, judged, oom bool) {
	defer timed(&t.times.Agent)()
	t.say("agent")
	limit := t.task.Limits.Time
	bounded, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("the agent had not done it in %s", durationText(limit)))
	defer cancel()
	killed := watchMemory(bounded, p)
	err := t.call(context.WithValue(bounded, logKey{}, t.log), box)
	var none *noProgramError
	if errors.As(err, &none) {
		t.fatal = err
	}
	t.waits = waits(ctx, box)
	v, judged = ofAgent(bounded, err, t.waits)
	return v, judged, killed()
}

// agentGrace is how long an agent may take to return after the end of its ctx: what its box then
// kills has some seconds to end.
const agentGrace = 20 * time.Second

// call calls the agent, and takes the box away from one that does not heed its ctx.
func (t *trial) call(ctx context.Context, box sandbox.Sandbox) error {
	done := guard.Go("the agent", func() error { return t.Agent(ctx, box, t.task) })
	ended := func(err error) error {
		var panicked *guard.PanicError
		if errors.As(err, &panicked) {
			t.say("%v\n%s", err, panicked.Stack)
		}
		return err
	}
	select {
	case err := <-done:
		return ended(err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return ended(err)
	case <-time.After(agentGrace):
		box.Close()
		return ended(<-done)
	}
}

// watchMemory watches, until killed is called, whether the kernel kills in the box because memory
// is used up. The box tells it at the end of a program that has run all the while; this one says
// that it runs, and waits for the end of its input.
func watchMemory(ctx context.Context, p *place) (killed func() bool) {
	r, w := io.Pipe()
	said, says := io.Pipe()
	var oom bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		// a box that is lost says so itself
		p.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", "echo; read nothing"}, Stdin: r,
			Stdout: says, OOM: &oom})
		r.Close()
		says.Close()
	}()
	said.Read(make([]byte, 1))
	said.Close() // what it says more is dropped
	return func() bool {
		w.Close()
		<-done
		return oom
	}
}

// waitsLimit is for how long a command that runs on when its agent has ended is looked at.
const waitsLimit = 5 * time.Second

// waits reports whether the main session's command waits for an answer. If it does, or there is
// none, Wait returns at once.
func waits(ctx context.Context, box sandbox.Session) bool {
	r, err := box.Wait(ctx, sandbox.Yield(waitsLimit))
	return err == nil && r.State == sandbox.Waiting
}

// differencesMax is how many differences the log shows.
const differencesMax = 20
