package shellbox

import (
	"cmp"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// A certainty says how sure it is that a command waits for input.
type certainty int

const (
	// unasked: nothing reads the terminal, or that is not known.
	unasked certainty = iota
	// mayWork: the program that reads may go on without input, or one that waits for it may, or
	// another program of the command runs at this moment, or it is a guess.
	mayWork
	// othersWork: the program that reads does nothing else, and other programs of the command may
	// go on, but sleep.
	othersWork
	// certain: nothing of the command goes on without input.
	certain
)

// A reader is who reads the terminal, and what it wants. Two looks that find the same reader have
// found the same question, if there was no output or input between them.
type reader struct {
	pid   int // 0: a guess
	kind  sandbox.InputKind
	turns int64 // of a guess: those of all processes of the terminal
}

// A question is what the looks have found a command to wait for.
type question struct {
	certainty certainty
	reader    reader
	since     time.Time // when the reader was first found
}

// A told question is one that a call has returned with MayGoOn.
type told struct {
	reader reader
	active time.Time // the command's last activity then
}

// The times for which a command must have been quiet that reads the terminal and may go on.
const (
	shownPatience = time.Second     // if the terminal shows a question
	patience      = 5 * time.Second // if not
)

// askLocked records what the looks have found. Calls look at it if it is news to them.
func (c *command) askLocked(q question) {
	if q != c.question {
		c.question = q
		c.changed.Send()
	}
}

// patienceLocked is for how long a command must have been quiet that r reads and that may go on. It
// depends on whether the terminal shows a question: an unfinished line, input that is not echoed,
// raw mode or a full screen.
func (c *command) patienceLocked(r reader) time.Duration {
	if r.kind != sandbox.Line || c.out.Partial() || c.out.FullScreen() {
		return shownPatience
	}
	return patience
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
	case q.certainty == unasked || w.o.Question == sandbox.KeepWaiting || c.phase != running:
		return due, false
	case q.certainty == certain:
		return due, true
	case d < 0 || d == 0 && acts:
		return due, false
	case c.told == told{q.reader, c.active}:
		return w.began.Add(cmp.Or(d, patience)), true
	case d == 0 && q.certainty == othersWork:
		return due, true
	case d == 0:
		d = c.patienceLocked(q.reader)
	}
	if due = c.active; q.since.After(due) {
		due = q.since
	}
	return due.Add(d), true
}

// questionLocked deals with a command that waits for input, as AtQuestion says.
func (w *call) questionLocked() (r *sandbox.Result, err error, over bool) {
	c, q := w.c, w.c.question
	mayGoOn := q.certainty != certain
	switch {
	case w.o.Question == sandbox.Fail:
		w.reason = sandbox.ErrQuestion
		w.s.killLocked()
		return nil, nil, false
	case w.o.Question == sandbox.EndInput && !w.endOfInputTyped &&
		!(mayGoOn && q.reader.kind == sandbox.Keys): // to a program that works, ^D is any key
		w.endOfInputTyped = true
		w.s.typeLocked("\x04")
		return nil, nil, false
	}
	if mayGoOn {
		c.told = told{q.reader, c.active}
	}
	w.s.logWaitingLocked(c, q.reader.kind, mayGoOn)
	r = w.soFarLocked(sandbox.Waiting)
	r.Awaits, r.MayGoOn = q.reader.kind, mayGoOn
	return r, nil, true
}
