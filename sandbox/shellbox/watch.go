package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// How the engine finds that a command waits for input: the host says which threads wait for the
// terminal (Processes.Look). Three looks some milliseconds apart must agree. Between them there
// must be no output, and the thread must not run. After each look the engine waits until the
// program has got the input written so far, and its output so far has been read (Processes.Settle).
// So the output before the read has arrived when Waiting is reported, and a program that is working
// through its input is not taken for one that waits.
//
// A command that reads the terminal may also go on by itself, or it is only guessed to read. Then
// the watch keeps looking: each call decides for itself how long the command must be quiet (see
// questionDueLocked), and the step from there to a command that waits for certain comes without
// output. It looks at that command's threads while they work, so single looks differ: it has lost
// the reader only after several looks in a row without it.
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
	// The machine is busy if a timer fires slowMin late, or if a look takes that long. A look by
	// control.sh takes 3 to 5 ms on any machine.
	slowMin   = 3 * time.Millisecond
	slowAsked = 9 * time.Millisecond
	// What has not changed for surely is not going to.
	surely = time.Second
	// So many looks in a row must agree.
	looksToAgree = 3

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
	reading       reading       // who reads the terminal
	slow          time.Duration // the machine's delay: the worst of the last looks
	questions     int           // how often the shell was asked again whether the command has ended
	firstQuestion time.Time     // when it was asked so for the first time
}

// run looks until the command's end.
func (w *watch) run() {
	for pause := time.Duration(0); ; {
		due := time.Now().Add(pause)
		if !w.await(time.After(pause), nil) {
			return
		}
		w.slow = max(time.Since(due), w.slow*3/4)
		changed, over := w.isOver()
		if over {
			return
		}
		seen, look := w.shouldLook(&pause)
		if !look {
			if pause == 0 { // no call wants to know
				if !w.await(nil, changed) {
					return
				}
				pause, w.reading = paceMin, reading{}
			}
			continue
		}
		f := w.look(seen)
		if f.found() || f.idle {
			f.busy = w.s.box.processes.Settle(w.sh.proc)
		}
		w.s.mu.Lock()
		pause = w.judgeLocked(&f)
		w.s.mu.Unlock()
	}
}

// await waits for the timer, or until changed is closed. It reports false if the watch is over.
func (w *watch) await(timer <-chan time.Time, changed <-chan struct{}) bool {
	select {
	case <-timer:
		return true
	case <-changed:
		return true
	case <-w.c.done:
	case <-w.sh.ended:
	case <-w.s.ended:
	}
	return false
}

// isOver reports whether the watch is over. changed is closed when a call comes or goes later.
func (w *watch) isOver() (changed <-chan struct{}, over bool) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.c.changed.Wait(), w.s.err != nil || w.s.sh != w.sh || w.s.cmd != w.c ||
		w.c.phase.over() || w.c.phase == queued || w.c.tries != w.tries
}

// shouldLook reports whether to look at once. If not, it sets pause to when to ask again, or to 0
// if no call wants to know.
func (w *watch) shouldLook(pause *time.Duration) (seen time.Time, look bool) {
	s, c := w.s, w.c
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := time.Since(c.active)
	// where no look can tell that the line was dropped
	if w.questions == 0 && c.phase.onPipe() && c.seq != unknownSeq && quiet > surely {
		w.askLocked()
	}
	switch {
	case c.calls == 0 || c.question.certainty == certain:
		*pause = 0
	case c.blocksReader():
		// The caller takes no output: what follows, perhaps the command's end, has not been read.
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
		w.sh.commands.Write(dialect.Repair)
	}
	w.s.askShellLocked(w.sh)
}

// judgeLocked weighs a finding, and returns how long to wait before the next look.
func (w *watch) judgeLocked(f *finding) time.Duration {
	c := w.c
	missing, apart := w.agreeLocked(f)
	quiet := time.Since(c.active)
	switch {
	case c.phase.over():
		return paceMin
	case f.stopped: // nothing goes on, and the program that has stopped it may read its commands
		w.s.advanceShellLocked(w.sh, stopFound)
		w.s.replaceShellLocked(w.sh)
		return surely
	case !f.found() && f.idle && missing > 0:
		return apart
	case !f.found() && f.idle:
		return w.askAgainLocked()
	case !f.found():
		if w.reading.looks == 0 {
			c.askLocked(question{})
		}
		return pace(quiet)
	case missing <= 0 && c.phase.onPipe() && f.wait.PID == w.sh.pid && time.Since(w.since) > surely:
		// it has lost its pipe
		w.s.replaceShellLocked(w.sh)
		return surely
	case c.phase != running && missing > 0:
		return apart
	case c.phase != running:
		return paceMax
	case w.s.box.control != nil && time.Now().Before(c.inputDue) && c.isDeaf(f):
		return paceMin
	case missing <= 0 && f.execed && (f.certainty > mayWork || time.Since(w.since) > surely):
		w.s.replaceExecedLocked(w.sh)
		return surely
	}
	if missing <= 0 {
		c.lastWait, c.inputDue = f.wait, time.Time{}
	}
	c.askLocked(w.questionLocked(f, missing))
	if missing > 0 && f.certainty > mayWork {
		return apart
	}
	return pace(quiet)
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
// has not arrived after a second never will: nothing reads it, or it has no end.
func (w *watch) agreeLocked(f *finding) (missing int, apart time.Duration) {
	between := !w.sh.keys.Idle() || !w.sh.commands.Idle() || !f.seen.Equal(w.c.active) ||
		!f.seen.Equal(w.last.seen)
	settled := !f.busy || time.Since(w.since) > surely
	if between || !f.same(&w.last) {
		w.agreed, w.since = 0, f.at
	}
	if settled {
		w.agreed++
	}
	w.reading.add(f, between, settled)
	w.last = *f
	busy := slowMin
	if w.s.box.control != nil {
		busy = slowAsked
	}
	if w.slow = max(w.slow, f.took); w.slow > busy {
		return looksToAgree + 1 - w.agreed, min(2*w.slow, paceMax)
	}
	return looksToAgree - w.agreed, paceMin
}

// askAgainLocked asks a shell that waits for its next line although it has been asked: it has
// dropped the question. A shell that never answers is replaced.
func (w *watch) askAgainLocked() time.Duration {
	w.agreed = 0
	// not sooner: on a busy machine the answer may have been read and not been handled
	if w.questions > maxTries && time.Since(w.firstQuestion) > surely {
		w.s.replaceShellLocked(w.sh)
		return surely
	}
	w.askLocked()
	return min(paceMax<<w.questions, surely/4)
}

// pace returns how long to wait between looks at a terminal that has been quiet for so long.
func pace(quiet time.Duration) time.Duration {
	if quiet < paceAfter {
		return min(max(quiet/4, paceMin), paceMax)
	}
	return min(quiet/1000, paceLong)
}
