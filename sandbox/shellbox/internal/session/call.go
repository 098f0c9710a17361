package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// A call is one caller's wait for a command.
type call struct {
	s               *Session
	c               *command
	o               sandbox.ExecOptions
	view            *output.View
	tee             *output.Tee   // nil: none
	pending         []output.Mark // what the callers' writers must have got before the call returns
	began           time.Time
	reason          error // why the call has had the command killed
	endOfInputTyped bool  // the end of input has been typed
}

// newCallLocked begins a call about the command.
func (s *Session) newCallLocked(c *command, o sandbox.ExecOptions) *call {
	w := &call{s: s, c: c, o: o, began: time.Now()}
	c.addCallLocked(w)
	return w
}

// waitAndDrain waits for what ends the call, and until the caller's writers have all of the output.
func (w *call) waitAndDrain(ctx context.Context, m mode) (*sandbox.Result, error) {
	r, err := w.wait(ctx, m)
	return r, errors.Join(err, w.drain(ctx))
}

// killPatience is how long a killing may take before the call asks whether the box answers at all,
// and how long the box may then take to answer. A paused container never does.
const killPatience = 5 * time.Second

// errNoAnswer ends a call whose command is to be killed in a box that does not answer.
var errNoAnswer = errors.New("the box does not answer, and may be paused: the command is killed " +
	"when it does")

// wait waits for what ends the call, and returns its Result.
func (w *call) wait(ctx context.Context, m mode) (*sandbox.Result, error) {
	timeout, yield, idle := after(w.o.Timeout, w.began), after(w.o.Yield, w.began),
		after(w.o.Idle, w.began)
	canceled := ctx.Done()
	var impatient <-chan time.Time
	for {
		w.s.mu.Lock()
		r, err, over := w.resultLocked()
		changed, killed := w.c.changed.Wait(), w.c.phase.Killed()
		var asked <-chan time.Time
		if due, ok := w.questionDueLocked(); ok {
			asked = time.After(time.Until(due))
		}
		w.s.mu.Unlock()
		if over {
			return r, err
		}
		if killed && impatient == nil {
			impatient = time.After(killPatience)
		}
		select {
		case <-changed:
		case <-asked:
		case <-w.s.ended:
		case <-impatient:
			impatient = nil
			if !w.s.box.answersWithin(killPatience) {
				if w.reason != nil {
					return w.stopWaiting(fmt.Errorf("%w: %w", w.reason, errNoAnswer))
				}
				return w.stopWaiting(errNoAnswer)
			}
		case <-idle:
			if r := w.stopIfIdle(&idle); r != nil {
				return r, nil
			}
		case <-yield:
			return w.stopWaiting(nil)
		case <-timeout:
			timeout = nil
			w.kill(fmt.Errorf("%w after %v", sandbox.ErrTimeout, w.o.Timeout))
		case <-canceled:
			canceled = nil
			if m != onEndKill {
				return w.stopWaiting(ctxerr.Of(ctx))
			}
			w.kill(ctxerr.Of(ctx))
		}
	}
}

// answersWithin reports whether the host answers a question within d.
func (b *Box) answersWithin(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return b.Processes.Answers(ctx)
}

// after returns a channel that is ready d after begin. If d is 0, it never is.
func after(d time.Duration, begin time.Time) <-chan time.Time {
	if d == 0 {
		return nil
	}
	return time.After(d - time.Since(begin))
}

// resultLocked returns the call's Result, if there is one yet.
func (w *call) resultLocked() (r *sandbox.Result, err error, over bool) {
	s, c := w.s, w.c
	switch {
	case w.view.Matched(): // even if the command has ended: the next call returns the end
		r = &sandbox.Result{State: sandbox.Running, ExitCode: -1,
			FullScreen: c.out.FullScreen(), Duration: time.Since(c.began)}
		c.out.UpToMatch(w.view).Fill(r)
		c.removeCallLocked(w)
		if c.phase == phase.Ended {
			s.unreported = c
		}
		return r, nil, true
	case c.phase >= phase.Ended:
		r = w.finalResultLocked()
		if r == nil && w.reason == nil && c.lost != nil {
			return nil, c.lost, true
		}
		if r == nil && w.reason == nil {
			return nil, sandbox.ErrIdle, true
		}
		return r, w.reason, true
	case s.err != nil:
		return w.soFarLocked(sandbox.Running), s.err, true
	}
	if due, ok := w.questionDueLocked(); ok && !time.Now().Before(due) {
		return w.questionLocked()
	}
	return nil, nil, false
}

// finalResultLocked returns the Result of a command that has ended, or nil if the command has never
// run.
func (w *call) finalResultLocked() *sandbox.Result {
	s, c := w.s, w.c
	c.removeCallLocked(w)
	if c.result == nil {
		return nil
	}
	r := *c.result
	c.out.All(w.view, true).Fill(&r)
	r.FullScreen = c.out.FullScreen()
	s.advanceLocked(c, phase.ResultReturned)
	s.noteGivenLocked(c)
	if s.unreported == c {
		s.unreported = nil
	}
	r.Restarted = r.Restarted || s.restarted
	s.restarted = false
	r.Incomplete = dialect.Incomplete(r.Output)
	return &r
}

// soFarLocked ends the call with a Result of the unfinished command.
func (w *call) soFarLocked(state sandbox.State) *sandbox.Result {
	c := w.c
	r := &sandbox.Result{State: state, ExitCode: -1, FullScreen: c.out.FullScreen(),
		Duration: time.Since(c.began)}
	c.out.All(w.view, false).Fill(r)
	c.removeCallLocked(w)
	return r
}

// kill kills the command, if it has not ended. The call's error is why.
func (w *call) kill(why error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if !w.c.phase.Over() || w.c.phase.Killed() {
		w.reason = why
	}
	if w.s.cmd == w.c {
		w.s.killLocked()
	}
}

// stopWaiting returns the output so far, beside err. The command goes on.
func (w *call) stopWaiting(err error) (*sandbox.Result, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if r, lookErr, over := w.resultLocked(); over {
		return r, lookErr
	}
	return w.soFarLocked(sandbox.Running), err
}

// stopIfIdle returns the output so far if nothing has come for Idle. Otherwise it sets idle to when
// to look again.
func (w *call) stopIfIdle(idle *<-chan time.Time) *sandbox.Result {
	w.s.mu.Lock()
	quiet := time.Since(w.c.active)
	w.s.mu.Unlock()
	if quiet < w.o.Idle {
		*idle = time.After(w.o.Idle - quiet)
		return nil
	}
	r, _ := w.stopWaiting(nil)
	return r
}

// drain waits until the callers' writers have all of the output that the Result is about. It waits
// for WriterDelay from when something else wants the call to return, and until then without limit.
// If the call has the command killed, its writers are limited anyway.
func (w *call) drain(ctx context.Context) error {
	w.s.mu.Lock()
	active := w.c.active
	w.s.mu.Unlock()
	// Ready at once, if the time has passed just as the command ended.
	timeout, yield, idle := after(w.o.Timeout, w.began), after(w.o.Yield, w.began),
		after(w.o.Idle, active)
	canceled, gone := ctx.Done(), w.s.ended
	var limit <-chan time.Time
	var spared bool
	var errs []error
	for _, m := range w.pending {
		for missing := m.Pending(); missing != nil; missing = m.Pending() {
			select {
			case <-missing:
				continue
			case <-limit: // and writers that had to wait for one that blocks get theirs only now
				if !output.GiveUpBlocked(w.pending) && spared {
					m.GiveUp()
				}
				limit, spared = time.After(output.WriterDelay), true
				continue
			case <-timeout:
				timeout = nil
			case <-yield:
				yield = nil
			case <-idle:
				idle = nil
			case <-canceled:
				canceled = nil
			case <-gone:
				gone = nil
			}
			limit = cmp.Or(limit, time.After(output.WriterDelay))
		}
		errs = append(errs, m.Failure())
	}
	return errors.Join(errs...)
}
