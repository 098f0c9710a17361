package session

import (
	"time"

	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/waiting"
)

// Package waiting says how the engine finds that a command waits for input. Each call decides for
// itself how long a command that may go on by itself must be quiet (see questionDueLocked).
//
// How the engine finds that a command was aborted and has no End marker: soon after the command's
// begin it asks the shell (tend). The shell answers when it is back. Only an interrupt
// at that very moment makes it drop the question. Then looks find the shell waiting for a line, and
// it is asked again.

const (
	quietMin = 4 * time.Millisecond // before the first look

	// These are for hosts that cannot settle. A program that has not reacted to input after
	// unanswered will not react. To a line, or to a key in raw mode, it has until undelivered.
	unanswered  = 250 * time.Millisecond
	undelivered = 5 * time.Second
)

// A watch looks again and again, while one command runs, whether the command waits for input.
type watch struct {
	s             *Session
	c             *command
	sh            *shell
	tries         int // the command's; a command that is sent again gets another watch
	looks         waiting.Looks
	questions     int       // how often the shell was asked again whether the command has ended
	firstQuestion time.Time // when it was asked so for the first time
}

// tendSoonLocked has tend called after d, or sooner. A session has one timer for this and not two
// for each command: most commands are over before it fires.
func (s *Session) tendSoonLocked(d time.Duration) {
	switch {
	case s.tends:
	case s.tending == nil:
		s.tending = time.AfterFunc(d, s.tend)
	default:
		s.tending.Reset(d)
	}
	s.tends = true
}

// tend begins to watch a command that was sent quietMin ago. It asks the shell for its status when
// the command has run for quietMin. The shell answers when it is back, even if the command was
// aborted and no End marker was printed. It is asked only when the output has begun, because it
// does not read its pipe then. Before that, busybox ash would buffer the question and give it as
// input to the applets that it runs without executing them (sort).
func (s *Session) tend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tends = false
	c := s.cmd
	if s.err != nil || c == nil || c.phase == phase.Queued || c.phase.Over() {
		return
	}
	due := func(since time.Time) bool {
		left := quietMin - time.Since(since)
		if left > 0 {
			s.tendSoonLocked(left)
		}
		return left <= 0
	}
	if c.watched != c.tries && due(c.sentAt) {
		s.watchLocked(c)
	}
	// while the command is killed, an interrupt would cut the question
	if c.phase == phase.Running && !c.asked && due(c.begunAt) {
		c.asked = true
		s.askShellLocked(c.sh)
	}
}

// watchLocked begins to watch a command.
func (s *Session) watchLocked(c *command) {
	c.watched = c.tries
	s.readers.Go(s.newWatch(c, c.sh).run)
}

func (s *Session) newWatch(c *command, sh *shell) *watch {
	return &watch{s: s, c: c, sh: sh, tries: c.tries,
		looks: waiting.Looks{ControlShell: s.box.ControlShell}}
}

// run looks until the command's end.
func (w *watch) run() {
	for pause := time.Duration(0); ; {
		due := time.Now().Add(pause)
		if !w.await(time.After(pause), nil) {
			return
		}
		w.looks.Late(time.Since(due))
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
				pause = waiting.PaceMin
				w.looks.Forget()
			}
			continue
		}
		f := w.look(seen)
		if f.Found() || f.Idle {
			f.Busy = w.s.box.Processes.Settle(w.sh.proc)
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

// look looks once.
func (w *watch) look(seen time.Time) waiting.Finding {
	f := waiting.Finding{At: time.Now(), Seen: seen}
	l, err := w.s.box.Processes.Look(w.sh.proc)
	f.Took = time.Since(f.At)
	if err == nil {
		f.Judge(&l, waiting.Shell{PID: w.sh.pid, Pipe: w.sh.pipe, Image: w.sh.image}, w.shows)
	}
	return f
}

// shows reports what the terminal shows.
func (w *watch) shows() (partial, full bool) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.c.out.Partial(), w.c.out.FullScreen()
}

// isOver reports whether the watch is over. changed is closed when a call comes or goes later.
func (w *watch) isOver() (changed <-chan struct{}, over bool) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.c.changed.Wait(), w.s.err != nil || w.s.sh != w.sh || w.s.cmd != w.c ||
		w.c.phase.Over() || w.c.phase == phase.Queued || w.c.tries != w.tries
}

// shouldLook reports whether to look at once. If not, it sets pause to when to ask again, or to 0
// if no call wants to know.
func (w *watch) shouldLook(pause *time.Duration) (seen time.Time, look bool) {
	s, c := w.s, w.c
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := time.Since(c.active)
	// where no look can tell that the line was dropped
	if w.questions == 0 && c.phase.OnPipe() && c.seq != unknownSeq && quiet > waiting.Surely {
		w.askLocked()
	}
	switch {
	case c.calls == 0 || c.question.Certainty == waiting.Certain:
		*pause = 0
	case c.blocksReader():
		// The caller takes no output: what follows, perhaps the command's end, has not been read.
		*pause = waiting.PaceMax
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
func (w *watch) judgeLocked(f *waiting.Finding) time.Duration {
	c := w.c
	missing, apart := w.addLocked(f)
	quiet := time.Since(c.active)
	switch {
	case c.phase.Over():
		return waiting.PaceMin
	case f.Stopped: // nothing goes on, and the program that has stopped it may read its commands
		w.s.advanceShellLocked(w.sh, phase.StopFound)
		w.s.replaceShellLocked(w.sh)
		return waiting.Surely
	case !f.Found() && f.Idle && missing > 0:
		return apart
	case !f.Found() && f.Idle:
		return w.askAgainLocked()
	case !f.Found():
		if !w.looks.Reading() {
			c.askLocked(waiting.Question{})
		}
		return waiting.Pace(quiet)
	case missing <= 0 && c.phase.OnPipe() && f.Wait.PID == w.sh.pid &&
		w.looks.Agree(waiting.Surely):
		// it has lost its pipe
		w.s.replaceShellLocked(w.sh)
		return waiting.Surely
	case c.phase != phase.Running && missing > 0:
		return apart
	case c.phase != phase.Running:
		return waiting.PaceMax
	case w.s.box.ControlShell && time.Now().Before(c.inputDue) && c.isDeaf(f):
		return waiting.PaceMin
	case missing <= 0 && f.Execed &&
		(f.Certainty > waiting.MayWork || w.looks.Agree(waiting.Surely)):
		w.s.replaceExecedLocked(w.sh)
		return waiting.Surely
	}
	if missing <= 0 {
		c.lastWait, c.inputDue = f.Wait, time.Time{}
	}
	c.askLocked(w.looks.Question(f, missing, c.question))
	if missing > 0 && f.Certainty > waiting.MayWork {
		return apart
	}
	return waiting.Pace(quiet)
}

// isDeaf reports whether nothing shows that the program has got what was typed last. Either it has
// not run since it was last found to wait. Or it may have run for another reason: its terminal
// echoes, and has echoed nothing.
func (c *command) isDeaf(f *waiting.Finding) bool {
	m := f.Wait.Modes
	return f.Wait == c.lastWait || m.Known && !m.Raw && !m.NoEcho && c.printed == c.printedAtLine
}

// addLocked adds a finding. It returns how many more must agree, and how long to wait before the
// next look.
func (w *watch) addLocked(f *waiting.Finding) (missing int, apart time.Duration) {
	return w.looks.Add(f, w.c.active, !w.sh.keys.Idle() || !w.sh.commands.Idle())
}

// askAgainLocked asks a shell that waits for its next line although it has been asked: it has
// dropped the question. A shell that never answers is replaced.
func (w *watch) askAgainLocked() time.Duration {
	w.looks.Again()
	// not sooner: on a busy machine the answer may have been read and not been handled
	if w.questions > maxTries && time.Since(w.firstQuestion) > max(waiting.Surely,
		4*patientLooks*w.looks.Slow()) {
		w.s.replaceShellLocked(w.sh)
		return waiting.Surely
	}
	w.askLocked()
	return min(waiting.PaceMax<<w.questions, waiting.Surely/4)
}
