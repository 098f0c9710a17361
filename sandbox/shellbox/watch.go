package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// How the engine finds that a command waits for input: the host says which threads wait for the
// terminal (Processes.Look). Three looks some milliseconds apart must agree. Between them there
// must be no output, and the thread must not run. After each look the engine waits until the
// program has got the input written so far, and its output so far has been read (Processes.Settle).
// So the output before the read has arrived when Waiting is reported, and a program that is working
// through its input is not taken for one that waits. A program that may go on by itself, or that is
// only guessed to wait, must be found so for a second.
//
// How the engine finds that a command was aborted and has no End marker: soon after the command's
// begin it asks the shell (askWhileRunning). The shell answers when it is back. Only an interrupt
// at that very moment makes it drop the question. Then looks find the shell waiting for a line, and
// it is asked again.

// The pace of the looks depends on how long the terminal has been quiet: a fast command is never
// looked at, a long one seldom.
const (
	quietMin  = 4 * time.Millisecond  // before the first look
	paceMin   = 4 * time.Millisecond  // between looks
	paceMax   = 20 * time.Millisecond // in the first half minute
	paceLong  = time.Second           // at most
	paceAfter = 30 * time.Second
	// The machine is busy if a timer fires so late, or if a look takes so long. A look by
	// control.sh takes 3 to 5 ms on any machine.
	slowMin   = 3 * time.Millisecond
	slowAsked = 9 * time.Millisecond
	// A program that may go on by itself, or is a guess, must be found to wait for so long.
	surely = time.Second

	// These are for hosts that cannot settle. A program that has not reacted to input after
	// unanswered will not react. To a line, or to a key in raw mode, it has until undelivered.
	unanswered  = 250 * time.Millisecond
	undelivered = 5 * time.Second
)

// A watch looks again and again, while one command runs, whether the command waits for input.
type watch struct {
	s             *session
	c             *command
	sh            *shell
	tries         int           // the command's; a command that is sent again gets another watch
	last          finding       // of the last look
	agreed        int           // how many looks in a row have found the same
	since         time.Time     // when the first of them began
	slow          time.Duration // the machine's delay: the worst of the last looks
	questions     int           // how often the shell was asked again whether the command has ended
	firstQuestion time.Time     // when it was asked so for the first time
}

// A finding is the result of one look.
type finding struct {
	wait  proc.Wait // without Turns if the thread may go on by itself, because they may change
	found bool      // something waits
	sure  bool      // it waits for the terminal alone
	// it is not known which process waits: wait.Turns are those of all processes of the terminal
	guess   bool
	idle    bool // the shell waits for its next line
	stopped bool // the shell is stopped
	execed  bool // another interactive shell is in the place of ours
	kind    sandbox.InputKind
	busy    bool // some input or output of before the look has not come through
	at      time.Time
	took    time.Duration
	seen    time.Time // the command's last activity before the look
}

// same reports whether two looks have found the same, with nothing in between.
func (f *finding) same(g *finding) bool {
	a, b := f.wait, g.wait
	a.Modes, b.Modes = proc.Modes{}, proc.Modes{}
	return a == b && f.found == g.found && f.sure == g.sure && f.idle == g.idle &&
		f.execed == g.execed && f.seen.Equal(g.seen)
}

// run looks until the command's end.
func (w *watch) run() {
	pause := time.Duration(0)
	for {
		due := time.Now().Add(pause)
		changed, over := w.pause(pause)
		if over {
			return
		}
		w.slow = max(time.Since(due), w.slow*3/4)
		seen, look := w.shouldLook(&pause)
		if !look {
			if pause == 0 { // nobody wants to know
				select {
				case <-changed:
				case <-w.c.done:
				case <-w.sh.ended:
				case <-w.s.ended:
				}
				pause = paceMin
			}
			continue
		}
		f := w.look(seen)
		if f.found || f.idle {
			f.busy = w.s.box.settle(w.sh.proc)
		}
		w.s.mu.Lock()
		pause = w.judgeLocked(&f)
		w.s.mu.Unlock()
	}
}

// pause waits for d. It returns a channel that is closed when a call has come or gone, and whether
// the watch is over.
func (w *watch) pause(pause time.Duration) (changed <-chan struct{}, over bool) {
	w.s.mu.Lock()
	changed = w.c.changed.Wait()
	over = w.s.err != nil || w.s.sh != w.sh || w.s.cmd != w.c || w.c.phase.over() ||
		w.c.phase == queued || w.c.tries != w.tries
	w.s.mu.Unlock()
	if over || pause == 0 {
		return changed, over
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.c.done:
		over = true
	case <-w.sh.ended:
		over = true
	case <-w.s.ended:
		over = true
	}
	return changed, over
}

// shouldLook reports whether to look at once. If not, it sets pause to when to ask again, or to 0
// if no call wants to know.
func (w *watch) shouldLook(pause *time.Duration) (seen time.Time, look bool) {
	s, c := w.s, w.c
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := time.Since(c.active)
	// where no look can tell that the line was dropped
	if w.questions == 0 && c.phase.onPipe() && quiet > surely {
		w.askLocked()
	}
	switch {
	case c.calls == 0 || c.isJob || c.question != 0:
		*pause = 0
	case c.blocksReader():
		// the caller takes no output: what is behind it, the end even, has not been read
		*pause = paceMax
	case quiet < quietMin:
		*pause = max(quietMin-quiet, time.Millisecond)
	default:
		return c.active, true
	}
	return time.Time{}, false
}

// askLocked asks the shell again whether the command has ended.
func (w *watch) askLocked() {
	if w.questions == 0 {
		w.firstQuestion = time.Now()
	}
	if w.questions++; w.questions > maxTries {
		w.sh.commands.write(dialect.Repair)
	}
	w.sh.commands.write(w.sh.dialect.Ask(w.s.nextSeqLocked()))
}

// look looks once.
func (w *watch) look(seen time.Time) finding {
	f := finding{at: time.Now(), seen: seen}
	l, err := w.s.box.look(w.sh.proc)
	f.took = time.Since(f.at)
	if err != nil || l.Gone {
		return f
	}
	f.stopped, f.idle = l.Stopped, l.Reads != "" && l.Reads == w.sh.pipe
	if len(l.Waits) > 0 {
		f.found, f.wait = true, l.Waits[0]
		for _, wait := range l.Waits {
			if wait.Alone {
				f.sure, f.wait = true, wait
				break
			}
		}
		f.execed = f.wait.PID == w.sh.pid && w.sh.image != "" && l.Image != w.sh.image &&
			dialect.Interactive(l.Args)
		f.kind = kindOf(f.wait.Modes)
	} else if l.Hidden && !f.idle && !l.Runs {
		w.guess(&f, &l)
	}
	if !f.sure && !f.guess {
		f.wait.Turns = 0
	}
	return f
}

// guess says what processes may wait for that do not show it.
func (w *watch) guess(f *finding, l *proc.Look) {
	w.s.mu.Lock()
	partial, full := w.c.out.Partial(), w.c.out.FullScreen()
	w.s.mu.Unlock()
	f.kind = kindOf(l.HiddenModes)
	switch {
	case !l.Modes.Known:
	case f.kind == sandbox.Secret:
		f.found, f.sure = true, true
	case partial || full || f.kind == sandbox.Keys:
		f.found = true
	}
	f.guess, f.wait = f.found, proc.Wait{Turns: l.Total}
}

// judgeLocked weighs a finding, and returns how long to wait before the next look.
func (w *watch) judgeLocked(f *finding) time.Duration {
	c := w.c
	missing, apart := w.agreeLocked(f)
	quiet := time.Since(c.active)
	switch {
	case c.phase.over():
		return paceMin
	case f.stopped: // nothing would go on, and whoever has stopped it may take its commands
		w.sh.stopped = true
		w.s.replaceShellLocked(w.sh)
		return surely
	case !f.found && !f.idle:
		return pace(quiet)
	case missing > 0:
		return apart
	case !f.found:
		return w.askAgainLocked()
	case c.phase.onPipe() && f.wait.PID == w.sh.pid && time.Since(w.since) > surely:
		// it has lost its pipe
		w.s.replaceShellLocked(w.sh)
		return surely
	case c.phase != running:
		return paceMax
	case !f.sure && (time.Since(w.since) < surely || quiet < surely):
		return paceMax
	case w.s.box.control != nil && time.Now().Before(c.inputDue) && c.isDeaf(f):
		return paceMin
	case f.execed:
		w.s.replaceExecedLocked(w.sh)
		return surely
	}
	c.question, c.lastWait, c.inputDue = f.kind, f.wait, time.Time{}
	c.changed.Send()
	return paceMax
}

// isDeaf reports whether nothing shows that the program has got what was typed last. Either it has
// not run since it was last found to wait. Or it may have run for another reason: its terminal
// echoes, and has echoed nothing.
func (c *command) isDeaf(f *finding) bool {
	m := f.wait.Modes
	return f.wait == c.lastWait || m.Known && !m.Raw && !m.NoEcho && c.printed == c.printedAtLine
}

// agreeLocked compares a finding with the one before. It returns how many more must agree, and how
// long to wait before the next look.
//
// The program's output passes through queues of the kernel and of this program. On a busy machine
// that takes longer: one more look must agree there, and the looks are farther apart. Output that
// has not come through after a second never will: nobody reads it, or it has no end.
func (w *watch) agreeLocked(f *finding) (missing int, apart time.Duration) {
	if !f.same(&w.last) || !w.sh.keys.idle() || !w.sh.commands.idle() || !f.seen.Equal(w.c.active) {
		w.agreed, w.since = 0, f.at
	}
	if !f.busy || time.Since(w.since) > surely {
		w.agreed++
	}
	w.last = *f
	busy := slowMin
	if w.s.box.control != nil {
		busy = slowAsked
	}
	if w.slow = max(w.slow, f.took); w.slow > busy {
		return 4 - w.agreed, min(2*w.slow, paceMax)
	}
	return 3 - w.agreed, paceMin
}

// askAgainLocked asks a shell that waits for its next line although it has been asked: it has
// dropped the question. A shell that never answers is replaced.
func (w *watch) askAgainLocked() time.Duration {
	w.agreed = 0
	// not sooner: a busy machine may have read the answer, and not got round to it
	if w.questions > maxTries && time.Since(w.firstQuestion) > surely {
		w.s.replaceShellLocked(w.sh)
		return surely
	}
	w.askLocked()
	return min(paceMax<<w.questions, surely/4)
}

// pace returns how long to wait between looks after so long a quiet.
func pace(quiet time.Duration) time.Duration {
	if quiet < paceAfter {
		return min(max(quiet/4, paceMin), paceMax)
	}
	return min(quiet/1000, paceLong)
}

// kindOf says what a program that reads a terminal in these modes waits for.
func kindOf(m proc.Modes) sandbox.InputKind {
	switch {
	case m.Raw:
		return sandbox.Keys
	case m.NoEcho:
		return sandbox.Secret
	}
	return sandbox.Line
}
