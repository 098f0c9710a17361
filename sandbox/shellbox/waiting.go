package shellbox

import (
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// How a command is found to wait for input. No guess is needed where /proc can be read: a thread of the terminal's foreground process group
// is blocked in a read of the terminal, or, with the terminal in raw mode, in poll or its like. Three looks some milliseconds apart, with
// neither output nor a turn of that thread on a processor between them, have to agree: that makes sure that what was printed before the read
// has arrived, and that a reader on its way through its input is not taken for one that waits.

// The pace of the looks, by how long the terminal has been quiet: a fast command is never looked at, one that goes on for long
// seldom.
const (
	quietMin   = 4 * time.Millisecond  // before the first look
	paceMin    = 4 * time.Millisecond  // between looks
	paceMax    = 20 * time.Millisecond // in the first half minute
	paceLong   = time.Second           // at last
	paceAfter  = 30 * time.Second
	slowMin    = 3 * time.Millisecond   // a timer that fires as late, or a look that takes as long, tells of a busy machine
	lostMin    = 100 * time.Millisecond // as long, or ten times as long as the machine is behind, looks have to agree that a prompt is lost
	guessMin   = time.Second            // as long none of a program's processes, which do not show what they wait for, may run: apt-get does twice a second
	stuckMin   = time.Second            // without output until lines are typed again: that costs what the shell may have taken of them
	unanswered = 250 * time.Millisecond // a program that has not reacted to input after that does not want to
)

// An identity is one wait of one thread.
type identity struct {
	pid, tid int
	turns    string // how often the thread has run, as its schedstat has it
	kind     sandbox.InputKind
}

// sameWait compares all but the kind, which the first look does not find out.
func (i identity) sameWait(j identity) bool {
	j.kind = i.kind
	return i == j
}

// A watch looks, during one call, whether the command waits.
type watch struct {
	s        *session
	c        *command
	timer    *time.Timer
	due      time.Time // when the timer is to fire
	verdict  chan verdict
	looking  bool          // a look is under way
	last     verdict       // of the look before
	agreed   int           // how many looks in a row have found the same
	since    time.Time     // the first of them
	slow     time.Duration // by how much the machine is behind: the worst of the last looks
	killed   bool          // this call has the command killed: only a lost prompt is of interest
	attended bool          // somebody else answers: only a lost prompt is of interest
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
		return // its verdict sets the time of the next
	}
	w.slow = max(time.Since(w.due), w.slow*3/4)
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
	confirm := w.last.tid != 0 || w.last.prompt
	w.s.spawn(func() {
		v := w.s.look(confirm)
		v.seen, v.took = active, time.Since(v.at)
		w.verdict <- v
	})
}

// waiting weighs a verdict: it returns a Result if the command waits, else it sets the time of the next look.
func (s *session) waiting(c *command, w *watch, v verdict, limit int) *sandbox.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := w.last
	w.last, w.looking = v, false
	typed := s.typist.idle() // else the program waits for no more than the rest
	if agree := typed && v.seen.Equal(c.active) && v.seen.Equal(last.seen) && v.identity.sameWait(last.identity) && v.prompt == last.prompt && v.stuck == last.stuck; agree {
		w.agreed++
	} else {
		w.agreed, w.since = 1, v.at
	}
	// What the program printed before its read has to come through the kernel's and our own queues. On a machine that is behind
	// with its work that takes longer: then more looks have to agree, farther apart.
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
		// The shell that reads at its prompt may have said so long ago, and all that it printed be still on its way. To ask it then would
		// cost more than to wait.
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

// ask asks the shell at a lost prompt for its status, and gives it our prompt back; s.mu is held.
func (s *session) ask(c *command) {
	if !c.asked {
		s.box.log.Info("prompt lost: giving the shell its prompt back", "session", s.id, "command", abridged(c.text))
	}
	c.asked = true
	c.active = time.Now()
	if s.givesUp(c) {
		return
	}
	s.typist.write(s.shell.initLines(s.seq))
}

// retype has the command's lines typed again, at a terminal put in order: a command before has left it in a state in which no line
// can be ended (stty inlcr). What the shell may have got of them, the interrupt key takes back; the prompt that follows, or the next
// look, is the sign to type, since bash may still act on the key when it has the next line. s.mu is held.
func (s *session) retype(c *command) {
	c.active = time.Now()
	if s.givesUp(c) {
		return
	}
	if c.again {
		s.again(c)
		return
	}
	c.again = true
	s.box.log.Info("lines not taken: putting the terminal in order", "session", s.id, "command", abridged(c.text))
	pid, typist := s.pid, s.typist
	s.readers.Go(func() {
		for _, p := range s.box.tree(pid) {
			if p.pid == pid {
				s.box.do("sane " + itoa(p.tty))
			}
		}
		typist.interrupt([]byte{3})
	})
}

// again types the lines again; s.mu is held.
func (s *session) again(c *command) {
	s.typist.write(c.lines)
	c.again = false
}

// givesUp kills a shell that sits at a prompt and takes nothing any more (set -n), at the fourth attempt. s.mu is held.
func (s *session) givesUp(c *command) bool {
	if c.attempts++; c.attempts <= 3 {
		return false
	}
	s.box.log.Warn("killing the shell: it takes no commands any more", "session", s.id)
	pid := s.pid
	s.readers.Go(func() { s.box.do("send KILL " + itoa(pid)) })
	return true
}

// learn remembers what the shell looks like when it is at its prompt. From the prompt's output to the read it is a few
// microseconds, more on a busy machine.
func (s *session) learn() {
	pid := s.shellPID()
	for pause, begin := time.Millisecond, time.Now(); time.Since(begin) < 2*time.Second; pause = min(2*pause, 50*time.Millisecond) {
		ps := s.box.tree(pid)
		if len(ps) == 0 || ps[0].pid != pid {
			return
		}
		s.mu.Lock()
		s.startcode, s.prompt = ps[0].startcode, ""
		s.mu.Unlock()
		for _, t := range ps[0].threads {
			if t.reads || t.polls() {
				s.mu.Lock()
				s.prompt = t.signature()
				s.mu.Unlock()
				return
			}
		}
		select {
		case <-s.gone:
			return
		case <-time.After(pause):
		}
	}
}

// look looks once. confirm makes it find out the terminal's modes, which costs the control shell a fork.
func (s *session) look(confirm bool) verdict {
	s.mu.Lock()
	pid, prompt, startcode := s.pid, s.prompt, s.startcode
	unstarted := s.cmd != nil && s.cmd.typed && !s.cmd.started
	partial := s.cmd != nil && len(s.cmd.out.cleaner.Line()) > 0
	var quiet time.Duration
	if s.cmd != nil {
		quiet = time.Since(s.cmd.active)
	}
	var turns string // killed by the interrupt key, and run since, the shell that reads is at its prompt
	if s.cmd != nil {
		turns = s.cmd.turns
	}
	s.mu.Unlock()

	v := verdict{at: time.Now()}
	ps := s.box.tree(pid)
	var shell *process
	for i := range ps {
		if ps[i].pid == pid {
			shell = &ps[i]
		}
	}
	if shell == nil {
		return v
	}
	if shell.pgrp == shell.tpgid { // the shell itself is in the foreground: a builtin, a lost prompt, or what exec made of it
		exec := startcode != "" && startcode != shell.startcode
		for _, t := range shell.threads {
			if !t.reads && !t.polls() {
				continue
			}
			at := t.signature() == prompt && prompt != "" && !exec
			if unstarted {
				if at || t.polls() && s.box.modes(shell.tty).raw { // raw: a line editor
					// A shell that takes line after line is not stuck: its turns tell.
					v.stuck, v.identity = true, identity{pid: pid, tid: t.tid, turns: t.turns}
				}
				return v
			}
			if at || exec && isShell(shell.comm) || !exec && turns != "" && t.turns != turns {
				v.prompt = true
				return v
			}
			v.identity = identity{pid, t.tid, t.turns, sandbox.Line}
			if confirm {
				v.kind = s.box.modes(shell.tty).kind()
			}
			if exec && t.polls() && v.kind != sandbox.Keys {
				v.identity = identity{}
			}
			return v
		}
	}
	if unstarted {
		return v
	}
	return s.box.reader(ps, shell.tty, confirm, quiet, partial)
}

// reader finds who reads the terminal tty.
func (b *Box) reader(ps []process, tty int, confirm bool, quiet time.Duration, partial bool) verdict {
	v := verdict{at: time.Now()}
	var poller, closed *process
	var pollThread *thread
	works, turns := false, ""
	for i := range ps {
		p := &ps[i]
		if p.tty != tty || p.pgrp != p.tpgid {
			continue
		}
		works = works || p.state == "R" || p.state == "D"
		for j := range p.threads {
			t := &p.threads[j]
			turns += t.turns + " "
			switch {
			case t.reads, isShell(p.comm) && t.pollsOne():
				v.identity = identity{p.pid, t.tid, t.turns, sandbox.Line}
				if confirm {
					v.kind = b.modes(tty).kind()
				}
				return v
			case t.polls():
				poller, pollThread = p, t
			case t.closed && p.state != "R":
				closed = p
			}
		}
	}
	if poller == nil && closed == nil {
		return v
	}
	m := b.modes(tty)
	// A relay (sudo with use_pty, script, expect) has the terminal in raw mode and runs its program on one of its own: there is
	// the answer.
	if m.raw {
		for i := range ps {
			if p := &ps[i]; p.tty != tty && p.tty != 0 && p.pgrp == p.tpgid {
				return b.reader(ps, p.tty, confirm, quiet, partial)
			}
		}
	}
	switch {
	case poller != nil && m.raw && b.forks(ps, poller):
	case poller != nil && m.raw:
		v.identity = identity{poller.pid, pollThread.tid, pollThread.turns, sandbox.Keys}
	case closed == nil:
	case m.known && !m.raw && !m.echo:
		// Another user's process, which /proc does not show us (sudo, passwd): it has turned the echo off.
		v.identity = identity{closed.pid, closed.pid, turns, sandbox.Secret}
	case partial && quiet > unanswered && !works && poller == nil:
		// Another user's process: an unfinished line, silence, and that none of them works are all there is to go by. One that we see
		// and that waits for something else has them for that: apt-get its downloads.
		v.identity, v.guess = identity{closed.pid, closed.pid, turns, m.kind()}, true
	}
	return v
}

// forks reports whether the process has just forked and its child is on the way to what it is for: so a relay looks before its program is
// on a terminal of its own.
func (b *Box) forks(ps []process, parent *process) bool {
	for _, p := range ps {
		if p.ppid == parent.pid && p.startcode == parent.startcode && (p.state == "R" || p.state == "D") {
			now, err := b.uptime()
			return err == nil && float64(p.start)/100 > now-1
		}
	}
	return false
}

// modes are a terminal's.
type modes struct{ known, raw, echo bool }

func (b *Box) modes(tty int) modes {
	out, _ := b.do("modes " + itoa(tty))
	m := modes{known: out != "", echo: true}
	for _, word := range strings.Fields(out) {
		switch strings.TrimSuffix(word, ";") {
		case "-icanon":
			m.raw = true
		case "-echo":
			m.echo = false
		}
	}
	return m
}

func (m modes) kind() sandbox.InputKind {
	switch {
	case m.raw:
		return sandbox.Keys
	case !m.echo:
		return sandbox.Secret
	}
	return sandbox.Line
}
