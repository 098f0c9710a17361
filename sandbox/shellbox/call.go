package shellbox

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
)

// A call is one caller's wait for a command.
type call struct {
	s               *session
	c               *command
	o               sandbox.ExecOptions
	view            *output.View
	tee             *output.Tee   // nil: none
	pending         []output.Mark // that the callers' writers have to reach, when there is a Result
	began           time.Time
	reason          error // why it has the command killed
	endOfInputTyped bool  // the end of input has been typed
}

// newCallLocked begins a call about the command.
func (s *session) newCallLocked(c *command, o sandbox.ExecOptions) *call {
	w := &call{s: s, c: c, o: o, began: time.Now()}
	c.addCallLocked(w)
	return w
}

// waitAndDrain waits for what ends the call, and until the caller's writers have all of the output.
func (w *call) waitAndDrain(ctx context.Context, m mode) (*sandbox.Result, error) {
	r, err := w.wait(ctx, m)
	return r, errors.Join(err, w.drain(ctx))
}

// wait waits for what ends the call, and returns its Result.
func (w *call) wait(ctx context.Context, m mode) (*sandbox.Result, error) {
	timeout, yield, idle := after(w.o.Timeout, w.began), after(w.o.Yield, w.began),
		after(w.o.Idle, w.began)
	canceled := ctx.Done()
	for {
		w.s.mu.Lock()
		r, err, over := w.resultLocked()
		changed := w.c.changed.Wait()
		w.s.mu.Unlock()
		if over {
			return r, err
		}
		select {
		case <-changed:
		case <-w.s.ended:
		case <-idle:
			if r := w.stopIfIdle(&idle); r != nil {
				return r, nil
			}
		case <-yield:
			return w.stopWaiting(nil)
		case <-timeout:
			timeout = nil
			w.kill(sandbox.ErrTimeout)
		case <-canceled:
			canceled = nil
			if m != onEndKill {
				return w.stopWaiting(ctxerr.Of(ctx))
			}
			w.kill(ctxerr.Of(ctx))
		}
	}
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
		if c.phase == ended {
			s.unreported = c
		}
		return r, nil, true
	case c.phase >= ended:
		r = w.finalResultLocked()
		if r == nil && w.reason == nil {
			return nil, sandbox.ErrIdle, true
		}
		return r, w.reason, true
	case s.err != nil:
		r = c.partialResult(w.view, sandbox.Running)
		c.removeCallLocked(w)
		return r, s.err, true
	case c.question != 0 && w.o.Question != sandbox.KeepWaiting && !c.phase.killed():
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
	s.advanceLocked(c, resultReturned)
	if s.unreported == c {
		s.unreported = nil
	}
	r.Restarted = r.Restarted || s.restarted
	s.restarted = false
	r.Incomplete = dialect.Incomplete(r.Output)
	return &r
}

// questionLocked deals with a command that waits for input, as AtQuestion says.
func (w *call) questionLocked() (r *sandbox.Result, err error, over bool) {
	switch {
	case w.o.Question == sandbox.Fail:
		w.reason = sandbox.ErrQuestion
		w.s.killLocked()
		return nil, nil, false
	case w.o.Question == sandbox.EndInput && !w.endOfInputTyped:
		w.endOfInputTyped = true
		w.s.typeLocked("\x04")
		return nil, nil, false
	}
	kind := w.c.question
	r = w.c.partialResult(w.view, sandbox.Waiting)
	r.Awaits = kind
	w.s.logWaitingLocked(w.c, kind)
	w.c.removeCallLocked(w)
	return r, nil, true
}

// kill kills the command because of why, if the command has not ended.
func (w *call) kill(why error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if !w.c.phase.over() || w.c.phase.killed() {
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
	r := w.c.partialResult(w.view, sandbox.Running)
	w.c.removeCallLocked(w)
	return r, err
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
