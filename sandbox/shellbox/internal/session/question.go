package session

import (
	"cmp"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/waiting"
)

// A told question is one that a call has returned with MayGoOn.
type told struct {
	reader waiting.Reader
	active time.Time // the command's last activity then
}

// askLocked records what the looks have found. Calls look at it if it is news to them.
func (c *command) askLocked(q waiting.Question) {
	if q != c.question {
		c.question = q
		c.changed.Send()
	}
}

// patienceLocked is for how long a command must have been quiet that r reads and that may go on. It
// depends on whether the terminal shows a question: an unfinished line, input that is not echoed,
// raw mode or a full screen.
func (c *command) patienceLocked(r waiting.Reader) time.Duration {
	if r.Kind != sandbox.Line || c.out.Partial() || c.out.FullScreen() {
		return waiting.ShownPatience
	}
	return waiting.Patience
}

// questionDueLocked returns from when on the call deals with the question. ok is false if it never
// does, unless something changes.
//
// A question that a call has returned with MayGoOn is no news. The next call gives the command the
// time again, from the call's begin.
func (w *call) questionDueLocked() (due time.Time, ok bool) {
	c, d := w.c, w.o.Patience
	q := &c.question
	acts := w.o.Question == sandbox.Fail || w.o.Question == sandbox.EndInput
	switch {
	case q.Certainty == waiting.Unasked || w.o.Question == sandbox.KeepWaiting ||
		c.phase != phase.Running:
		return due, false
	case q.Certainty == waiting.Certain:
		return due, true
	case d < 0 || d == 0 && acts:
		return due, false
	case c.told == told{q.Reader, c.active}:
		return w.began.Add(cmp.Or(d, waiting.Patience)), true
	case d == 0 && q.Certainty == waiting.OthersWork:
		return due, true
	case d == 0:
		d = c.patienceLocked(q.Reader)
	}
	if due = c.active; q.Since.After(due) {
		due = q.Since
	}
	return due.Add(d), true
}

// questionLocked deals with a command that waits for input, as AtQuestion says.
func (w *call) questionLocked() (r *sandbox.Result, err error, over bool) {
	c, q := w.c, w.c.question
	mayGoOn := q.Certainty != waiting.Certain
	switch {
	case w.o.Question == sandbox.Fail:
		w.reason = sandbox.ErrQuestion
		w.s.killLocked()
		return nil, nil, false
	case w.o.Question == sandbox.EndInput && !w.endOfInputTyped &&
		!(mayGoOn && q.Reader.Kind == sandbox.Keys): // to a program that works, ^D is any key
		w.endOfInputTyped = true
		w.s.typeLocked("\x04")
		return nil, nil, false
	}
	if mayGoOn {
		c.told = told{q.Reader, c.active}
	}
	w.s.logWaitingLocked(c, q.Reader.Kind, mayGoOn)
	r = w.soFarLocked(sandbox.Waiting)
	r.Awaits, r.MayGoOn = q.Reader.Kind, mayGoOn
	return r, nil, true
}
