package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// How a command is found to wait for input. Where /proc can be read, no guess is needed: a thread of the terminal's foreground process group
// is blocked in a read of the terminal or, if the terminal is in raw mode, in poll or its like (look.go). Three looks some milliseconds apart have to
// agree. Between them there must be no output, and that thread must not run. After each look the engine waits until the program has got the input
// written so far, and its output so far has been read (Processes.Settle). So the output before the read has arrived when Waiting is reported, and a
// program that is working through its input is not taken for one that waits.

// The pace of the looks depends on how long the terminal has been quiet: a fast command is never looked at, a long one
// seldom.
const (
	quietMin   = 4 * time.Millisecond  // before the first look
	paceMin    = 4 * time.Millisecond  // between looks
	paceMax    = 20 * time.Millisecond // in the first half minute
	paceLong   = time.Second           // at last
	paceAfter  = 30 * time.Second
	slowMin    = 3 * time.Millisecond   // if a timer fires so late, or a look takes so long, the machine is busy
	lostMin    = 100 * time.Millisecond // looks have to agree for this time, or for ten times the machine's delay, that a prompt is lost
	guessMin   = time.Second            // processes that hide what they wait for must not run for this time: apt-get's run twice a second
	stuckMin   = time.Second            // lines are typed again after this time without output: the shell loses what it has taken of them
	unanswered = 250 * time.Millisecond // a program that has not reacted to input after this time is not going to
)

// An identity is one wait of one thread.
type identity struct {
	pid, tid int
	turns    int64 // how often the thread has run
	kind     sandbox.InputKind
}

// sameWait compares all but the kind, which the first look does not find out.
func (i identity) sameWait(j identity) bool {
	j.kind = i.kind
	return i == j
}

// A watch looks again and again, during one call, whether the command waits.
type watch struct {
	s        *session
	c        *command
	timer    *time.Timer
	due      time.Time // when the timer fires next
	verdict  chan verdict
	looking  bool          // a look is under way
	last     verdict       // of the look before
	agreed   int           // how many looks in a row have found the same
	since    time.Time     // the first of them
	slow     time.Duration // the machine's delay: the worst of the last looks
	killed   bool          // this call has the command killed: only a lost prompt is of interest
	attended bool          // another caller answers questions: only a lost prompt is of interest
}

// A verdict is what one look found.
type verdict struct {
	identity      // zero: it does not wait
	prompt   bool // the shell is at a prompt that is not ours
	stuck    bool // the shell is at its prompt, and has not taken the command's lines
	guess    bool // /proc does not tell what it waits for
	at       time.Time
	took     time.Duration
	seen     time.Time // the command's last activity, before the look
}

// found reports whether the look has found something that needs the confirmation of more looks.
func (v *verdict) found() bool { return v.tid != 0 || v.prompt || v.stuck }

func newWatch(s *session, c *command) *watch {
	w := &watch{s: s, c: c, timer: time.NewTimer(quietMin), due: time.Now().Add(quietMin), verdict: make(chan verdict, 1)}
	if c.once {
		w.timer.Stop() // nobody asks whether a job waits
	}
	return w
}

func (w *watch) stop() { w.timer.Stop() }

// in sets when to look again.
func (w *watch) in(d time.Duration) {
	w.due = time.Now().Add(d)
	w.timer.Reset(d)
}

// look starts a look, or puts it off while there is output.
func (w *watch) look() {
	if w.looking {
		return // the verdict of that look sets the time of the next
	}
	w.slow = max(time.Since(w.due), w.slow*3/4)
	if w.c.tee.writing.Load() { // the caller takes no output: what is behind it, the prompt even, has not been read, and the shell may long be there
		w.in(paceMax)
		return
	}
	w.s.mu.Lock()
	typed, started, active := w.c.typed, w.c.started, w.c.active
	w.s.mu.Unlock()
	wanted := quietMin
	if !started {
		wanted = unanswered
	}
	if quiet := time.Since(active); quiet < wanted || !typed {
		w.in(min(max(wanted-quiet, time.Millisecond), paceMax))
		return
	}
	w.looking = true
	confirm := w.last.tid != 0 || w.last.prompt // the modes cost the control shell a fork: only a look that may be the last asks for them
	w.s.spawn(func() {
		v := w.s.look(confirm)
		if v.found() {
			w.s.settle()
		}
		v.seen = active
		w.verdict <- v
	})
}

// waiting weighs a verdict: it returns a Result if the command waits, else it sets the time of the next look.
func (s *session) waiting(c *command, w *watch, v verdict, limit int) *sandbox.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := w.last
	w.last, w.looking = v, false
	typed := s.typist.idle() // if not, the program waits for the rest of the input, which is on its way
	if agree := typed && v.seen.Equal(c.active) && v.seen.Equal(last.seen) && v.identity.sameWait(last.identity) && v.prompt == last.prompt && v.stuck == last.stuck; agree {
		w.agreed++
	} else {
		w.agreed, w.since = 1, v.at
	}
	// The program's output passes through queues of the kernel and of ours. A busy machine takes longer to pass it on: there, one more look
	// has to agree, and the looks are farther apart.
	needed, apart := 3, paceMin
	w.slow = max(w.slow, v.took)
	if w.slow > slowMin {
		needed, apart = 4, min(2*w.slow, paceMax)
	}
	quiet := time.Since(c.active)
	switch {
	case v.tid == 0 && !v.prompt || w.c.started && v.stuck:
		w.in(pace(quiet))
		return nil
	case w.agreed < needed:
		w.in(apart)
		return nil
	case (v.prompt || v.stuck) && time.Since(w.since) < max(lostMin, 10*w.slow), v.stuck && quiet < stuckMin:
		// The shell reads at its prompt, but the marker that it has printed there may still be on its way. To wait for the marker costs less than
		// to ask a shell that has answered already.
		w.in(apart)
		return nil
	case v.guess && time.Since(w.since) < guessMin:
		w.in(paceMax)
		return nil
	case c.result != nil:
		return nil
	case v.stuck:
		s.retype(c)
		w.in(unanswered)
		return nil
	case v.prompt:
		s.ask(c)
		w.in(unanswered)
		return nil
	case w.killed:
		w.in(paceMax)
		return nil
	case w.attended:
		w.in(max(unanswered, pace(quiet)))
		return nil
	}
	if v.identity.sameWait(c.answered) && !c.inputAt.IsZero() && time.Since(c.inputAt) < unanswered {
		w.in(paceMin)
		return nil
	}
	c.answered, c.inputAt = v.identity, time.Time{}
	return c.partial(sandbox.Waiting, v.kind, limit)
}

func pace(quiet time.Duration) time.Duration {
	if quiet < paceAfter {
		return min(max(quiet/4, paceMin), paceMax)
	}
	return min(quiet/1000, paceLong)
}
