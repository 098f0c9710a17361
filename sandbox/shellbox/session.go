package shellbox

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
)

// A session is a shell on a terminal, with another one after it when it ends.
type session struct {
	box  *Box
	id   string
	opts sandbox.SessionOptions
	job  *job // the job that owns the session; nil if none does

	readers sync.WaitGroup // all goroutines of the session
	ended   chan struct{}  // closed when err is set

	mu         sync.Mutex
	err        error  // ErrClosed or ErrLost: the session is over
	sh         *shell // nil before the first
	ready      bool   // sh is at its prompt or runs cmd; else it is being started
	seq        int    // of the last line
	lastAnswer int    // of the last D marker
	// the last marker was a D: $? of what the next one ends, if no C is before it, is not a
	// command's
	statusStale bool
	seqUnknown  bool // after Attach: the number of the command under way is not known
	status      int  // $?
	cwd         string
	restarted   bool // the shell ended while no command was under way: the next Result says so
	rows, cols  int
	screen      *terminal.Tail
	alternate   bool     // the last command has left the alternate screen on
	cmd         *command // the unfinished one
	// when the last one ended; before the first one, a time before the first shell's
	lastEnd    time.Time
	unreported *command // the last one, if it ended while no call was waiting for it: Wait tells
}

// screenTail is how much raw output Screen is rendered from.
const screenTail = 256 << 10

func newSession(b *Box, id string, opts sandbox.SessionOptions) *session {
	return &session{
		box: b, id: id, opts: opts, rows: opts.Rows, cols: opts.Cols,
		screen: terminal.NewTail(screenTail),
		ended:  make(chan struct{}),
	}
}

// ID returns the session's id.
func (s *session) ID() string { return s.id }

// printingLocked returns the command whose output the shell sh shows, if there is one; s.mu is
// held.
func (s *session) printingLocked(sh *shell) *command {
	if c := s.cmd; c != nil && c.sh == sh && c.phase.prints() {
		return c
	}
	return nil
}

// handleOutput takes output of the shell sh that holds no marker.
func (s *session) handleOutput(sh *shell, text []byte) {
	s.mu.Lock()
	c := s.printingLocked(sh)
	if c == nil || len(text) == 0 {
		if !s.ready && len(sh.earlyText) < maxEarly {
			sh.earlyText = append(sh.earlyText, text...)
		}
		s.mu.Unlock()
		return
	}
	c.addOutputLocked(text)
	s.showLocked(c, text)
	spool, tees := c.spool, c.tees
	for _, t := range tees {
		t.Announce(len(text))
	}
	s.mu.Unlock()
	if spool != nil {
		spool.Write(text)
	}
	for _, t := range tees {
		t.Write(text)
	}
}

// skipOutput takes note that so many bytes of the shell's output will not come.
func (s *session) skipOutput(sh *shell, bytes int64) {
	s.handleOutput(sh, sh.scan.Flush())
	sh.readBytes += bytes
	s.mu.Lock()
	c := s.printingLocked(sh)
	s.mu.Unlock()
	if c != nil && c.spool != nil {
		c.spool.Skip(bytes)
	}
}

// markersMax is more than the markers around a job's output take.
const markersMax = 4 << 10

// maxLog is how many bytes the host keeps of the session's output, if it is a job's; else it is 0.
func (s *session) maxLog() int64 {
	if s.job == nil {
		return 0
	}
	if s.opts.MaxLog > math.MaxInt64-markersMax {
		return math.MaxInt64
	}
	return s.opts.MaxLog + markersMax
}

// handleMarker takes a marker of the shell sh.
func (s *session) handleMarker(sh *shell, m *dialect.Marker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.sh == sh && m.Kind == dialect.MoreLines:
		if s.printingLocked(sh) != nil {
			s.replaceShellLocked(sh)
		}
	case s.sh != sh || m.Seq <= s.lastAnswer: // an old one
	case m.Kind == dialect.Begin:
		s.statusStale = false
		s.beginMarkerLocked(m)
	case sh.stopped: // there is no result: the shell is about to be killed
	default:
		s.lastAnswer, s.cwd = m.Seq, m.Dir
		if m.Bash && !sh.dialect.Bash {
			sh.dialect.Bash, sh.dialect.HighFD = true, true
		}
		s.keepAliveLocked(sh, time.Duration(m.IdleLimit)*time.Second)
		sh.answered.Send()
		if s.ready {
			s.endMarkerLocked(m)
		} else if !s.statusStale {
			s.status = m.Status
		}
		s.statusStale = true
	}
}

// beginMarkerLocked takes a C marker; s.mu is held.
func (s *session) beginMarkerLocked(m *dialect.Marker) {
	c := s.cmd
	if c == nil || !c.phase.onPipe() || m.Seq != c.seq && !s.seqUnknown {
		return
	}
	c.seq, s.seqUnknown = m.Seq, false
	s.advanceLocked(c, outputBegan)
	c.background, c.active = m.Background, time.Now()
	if s.alternate { // as for Output, whose Cleaner is new
		s.screen.Write([]byte("\x1b[?1049l"))
		s.alternate = false
	}
	if s.job != nil && s.sh.jobStart == 0 {
		sh := s.sh
		sh.jobStart = sh.readBytes
		s.readers.Go(func() { s.note(sh) })
	}
	s.typeNowLocked(c, c.typedAhead)
	c.typedAhead = ""
	time.AfterFunc(quietMin, func() { s.askWhileRunning(c) })
}

// endMarkerLocked takes a D marker: the command's, or that of a question behind it; s.mu is held.
func (s *session) endMarkerLocked(m *dialect.Marker) {
	c := s.cmd
	if c == nil || c.phase.over() || m.Seq < c.seq && !s.seqUnknown {
		return
	}
	stopped := c.interruptTyped || c.phase.killed()
	switch {
	case c.phase == queued, c.phase.onPipe() && s.seqUnknown:
		return
	case c.phase == sent && !stopped: // no C: it has not run
		s.resendLocked(c, m.Seq == c.seq)
		return
	}
	// The interrupt key has the kernel drop what the terminal was to show, a C or D among it. So
	// nobody knows whether a command without C has run, and it is not run twice; of one without its
	// own D, $? is not told by the shell's answer: that says 0, or 2 of a question of which the
	// interrupt has cut a part.
	if stopped && m.Seq > c.seq && (m.Status == 0 || m.Status == 2) && !s.seqUnknown {
		m.Status = interrupted
	}
	s.seqUnknown, s.status = false, m.Status
	s.commandReturnedLocked(c, &sandbox.Result{State: sandbox.Exited, ExitCode: m.Status,
		Cwd: m.Dir})
}

// interrupted is the status of what SIGINT has ended.
const interrupted = 130

// askWhileRunning asks the shell for its status while the command still runs: it answers when it is
// back, also from a command that was aborted and says no D. The command's output has begun, so the
// shell does not read its pipe: busybox ash would buffer the question, and the applets that it runs
// without executing them (sort) would be given it as their input.
func (s *session) askWhileRunning(c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// an interrupt would cut the question
	if s.err == nil && s.cmd == c && c.phase == running {
		c.sh.commands.write(c.sh.dialect.Ask(s.nextSeqLocked()))
	}
}

// nextSeqLocked returns the number of the next line.
func (s *session) nextSeqLocked() int {
	s.seq++
	return s.seq
}

// sendLocked gives the queued command to the shell, if there is one; s.mu is held.
func (s *session) sendLocked() {
	c, sh := s.cmd, s.sh
	if c == nil || c.phase != queued || !s.ready {
		return
	}
	s.advanceLocked(c, lineSent)
	c.sh, c.seq, c.active = sh, s.nextSeqLocked(), time.Now()
	if c.startedAfter.IsZero() {
		c.startedAfter = s.lastEnd
	}
	c.tries++
	c.offset = sh.commands.write(sh.dialect.Command(c.seq, s.status, c.text, c.isJob))
	w := &watch{s: s, c: c, sh: sh, tries: c.tries}
	time.AfterFunc(quietMin, func() { s.spawn(w.run) })
}

// maxTries is how often a command's line is sent to a shell that does not take it, or asks go
// unanswered.
const maxTries = 3

// keepAliveLocked has the shell answer a question before it ends because it has been idle for
// limit: bash does so where TMOUT is set, which a profile may have made readonly. 0: it does not.
// s.mu is held.
func (s *session) keepAliveLocked(sh *shell, limit time.Duration) {
	if sh.idleTimer != nil {
		sh.idleTimer.Stop()
		sh.idleTimer = nil
	}
	if limit <= 0 || limit > 1<<20*time.Second {
		return
	}
	sh.idleTimer = time.AfterFunc(limit/2, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil && s.sh == sh && s.ready && s.cmd == nil {
			sh.commands.write(sh.dialect.Ask(s.nextSeqLocked()))
		}
	})
}

// resendLocked sends the command again, which the shell has not taken; s.mu is held. own says that
// the shell has said the command's own D: it could not open its terminal by its name.
func (s *session) resendLocked(c *command, own bool) {
	sh := s.sh
	s.box.log.Info("the shell has not taken a command: sending it again", "session", s.id,
		"command", c.number)
	switch {
	case own && sh.dialect.HighFD: // ulimit -n allows less
		sh.dialect.HighFD = false
	case own:
		sh.dialect.TTY = "/dev/tty"
	}
	if c.tries >= maxTries {
		s.replaceShellLocked(sh)
		return
	}
	s.advanceLocked(c, lineDropped)
	sh.commands.write(dialect.Repair)
	s.sendLocked()
}

// replaceShellLocked ends a shell that is of no use any more: another one takes its place; s.mu is
// held.
func (s *session) replaceShellLocked(sh *shell) {
	s.box.log.Warn("killing the shell: it takes no commands any more", "session", s.id)
	s.readers.Go(func() { s.box.send([]int{sh.pid}, proc.SIGKILL) })
}

// typeLocked types text to the unfinished command; s.mu is held.
func (s *session) typeLocked(text string) {
	c := s.cmd
	if text == "" || c == nil || c.phase.over() {
		if c != nil {
			c.typed += len(text)
			if c.result != nil {
				c.result.Unread += len(text)
			}
		}
		return
	}
	c.typed += len(text)
	c.active = time.Now()
	if c.question != 0 {
		c.question = 0
		c.changed.Send()
	}
	c.printedAtLine, c.inputDue = -1, c.active.Add(unanswered)
	if strings.ContainsAny(text, "\n\r") {
		c.printedAtLine = c.printed
	}
	// a read ends with the key or the line, and takes a turn
	if w := c.lastWait; w.Turns > 0 && (w.Modes.Raw || strings.ContainsAny(text, "\n\r\x04")) {
		c.inputDue = c.active.Add(undelivered)
	}
	// the interrupt key would cut the line that the shell is reading, and the rest be executed
	if !s.ready || c.phase == queued || c.phase.onPipe() && !s.seqUnknown {
		c.typedAhead += text
		return
	}
	s.typeNowLocked(c, text)
}

// typeNowLocked types text to a command that has begun; s.mu is held.
func (s *session) typeNowLocked(c *command, text string) {
	if strings.ContainsAny(text, "\x03\x1a\x1c") {
		c.interruptTyped = true
	}
	s.sh.keys.write(text)
}
