package session

import (
	"errors"
	"io"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/dialect"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/streams"
)

// printingLocked returns the command whose output the shell sh shows, or nil.
func (s *Session) printingLocked(sh *shell) *command {
	if c := s.cmd; c != nil && c.sh == sh && c.phase.Prints() {
		return c
	}
	return nil
}

// handleOutput takes output of the shell sh, without markers.
func (s *Session) handleOutput(sh *shell, text []byte) {
	s.mu.Lock()
	c := s.printingLocked(sh)
	if c == nil || len(text) == 0 {
		if sh.phase == phase.Starting && len(sh.earlyText) < maxEarly {
			sh.earlyText = append(sh.earlyText, text...)
		}
		s.mu.Unlock()
		return
	}
	c.out.SetSize(s.rows, s.cols)
	c.addOutputLocked(text)
	if !c.quiet { // set -v and set -x show what the engine does
		s.showLocked(c, text)
	}
	if c.spool != nil { // newCall reads from it what c.out has not kept
		c.spool.Write(text)
	}
	tees := c.tees
	for _, t := range tees {
		t.Announce(len(text))
	}
	s.mu.Unlock()
	for _, t := range tees {
		t.Write(text)
	}
}

// skipOutput counts bytes of the shell's output that the host no longer keeps.
func (s *Session) skipOutput(sh *shell, bytes int64) {
	s.handleOutput(sh, sh.scan.Flush())
	sh.readBytes += bytes
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.printingLocked(sh); c != nil && c.spool != nil {
		c.spool.Skip(bytes)
	}
}

// handleMarker takes a marker of the shell sh.
func (s *Session) handleMarker(sh *shell, m *dialect.Marker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.sh == sh && m.Kind == dialect.MoreLines:
		switch c := s.printingLocked(sh); {
		case c == nil:
		case c.phase.Killed(): // see killing.mendCut
			c.cut = true
			c.changed.Send()
		default:
			s.replaceShellLocked(sh)
		}
	case s.sh != sh || m.Seq <= s.lastAnswer: // an old marker
	case m.Kind == dialect.Begin:
		sh.statusStale = false
		s.beginMarkerLocked(m)
	case sh.phase == phase.Stopped: // the program that has stopped it may forge its markers
	default:
		s.lastAnswer, s.cwd = m.Seq, m.Dir
		if m.Bash && !sh.dialect.Bash {
			sh.dialect.Bash, sh.dialect.HighFD = true, true
		}
		s.keepAliveLocked(sh, time.Duration(m.IdleLimit)*time.Second)
		sh.answered.Send()
		if sh.phase.TakesCommands() {
			s.endMarkerLocked(m)
		} else if !sh.statusStale {
			s.status = m.Status
		}
		sh.statusStale = true
	}
}

// beginMarkerLocked takes a Begin marker.
func (s *Session) beginMarkerLocked(m *dialect.Marker) {
	c := s.cmd
	if c == nil || !c.phase.OnPipe() || c.seq != unknownSeq && m.Seq != c.seq {
		return
	}
	c.seq = m.Seq
	s.advanceLocked(c, phase.OutputBegan)
	c.background, c.active = m.Background, time.Now()
	s.renewal = ""
	c.begunAt = c.active
	if s.alternate && !c.quiet { // the Output begins on the main screen too
		s.screen.Write([]byte("\x1b[?1049l"))
		s.alternate = false
	}
	if c.isJob && s.sh.jobStart == 0 {
		sh := s.sh
		sh.jobStart = sh.readBytes
		s.readers.Go(func() { s.storeNote(sh) })
	}
	s.typeNowLocked(c, c.typedAhead)
	c.typedAhead = ""
	c.begun.Send()
	s.tendSoonLocked(quietMin)
}

// endMarkerLocked takes an End marker: the command's own, or the answer to a later question.
func (s *Session) endMarkerLocked(m *dialect.Marker) {
	c := s.cmd
	if c == nil || c.phase.Over() || m.Seq < c.seq {
		return
	}
	aborted := c.interruptTyped || c.phase.Killed()
	switch {
	case c.phase == phase.Queued, c.phase.OnPipe() && c.seq == unknownSeq:
		return
	case c.phase == phase.Sent && !aborted: // there was no Begin marker: it has not run
		s.resendLocked(c, m.Seq == c.seq)
		return
	}
	// The interrupt key has the kernel drop what the terminal was to show, which may be a marker.
	// So a command without a Begin marker may have run, and is not sent again. For a command
	// without its own End marker, the shell's answer does not tell $?: it says 0, or 2 if the
	// interrupt has cut the question.
	switch {
	case m.Seq == c.seq || c.seq == unknownSeq:
	case m.StatusOf != 0 && m.StatusOf != c.seq: // the interrupt came before the command had begun
		m.Status = interrupted
	case aborted && m.StatusOf == 0 && (m.Status == 0 || m.Status == 2):
		m.Status = interrupted
	}
	s.status, c.endsAt = m.Status, s.sh.readBytes
	s.commandReturnedLocked(c, &sandbox.Result{State: sandbox.Exited, ExitCode: m.Status,
		Cwd: m.Dir})
}

// interrupted is the exit status of a command that SIGINT has ended.
const interrupted = 130

// keepAliveLocked makes the shell answer a question before it ends because it has been idle for
// limit. bash does so if TMOUT is set, which a profile may have made readonly. If limit is 0, the
// shell does not end.
func (s *Session) keepAliveLocked(sh *shell, limit time.Duration) {
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
		if s.err == nil && sh.phase.TakesCommands() && s.cmd == nil {
			s.askShellLocked(sh)
		}
	})
}

// One read takes at most readMost bytes of the terminal's output. An idle box keeps a buffer of
// readFirst.
const (
	readMost  = 32 << 10
	readFirst = 1 << 10
)

// readTerminal reads the terminal until the shell's end.
func (s *Session) readTerminal(sh *shell) {
	eof := make(chan struct{})
	var status Status
	var waitErr error
	var got streams.Progress
	s.readers.Go(func() {
		status, waitErr = s.box.Wait(sh.proc)
		sh.oom = s.oomKilled(nil) // before Close: then the host forgets the shell
		close(sh.exited)
		// A background process may keep the terminal open after the shell's end. Do not wait for
		// it. What the shell has printed has arrived.
		s.untilQuiet(sh, eof, &got)
		sh.proc.Close()
	})
	buf := make([]byte, readFirst)
	var end error
	for end == nil {
		var n int
		n, end = sh.proc.Stdout().Read(buf)
		got.Begin(n)
		s.readChunk(sh, buf[:n])
		got.End()
		if gone := (*hostapi.SkippedError)(nil); errors.As(end, &gone) {
			s.skipOutput(sh, gone.Bytes)
			end = nil
		}
		if n == len(buf) && n < readMost { // it prints much
			buf = make([]byte, 2*n)
		}
	}
	s.handleOutput(sh, sh.scan.Flush())
	close(eof)
	sh.commands.Stop()
	sh.keys.Stop()
	select {
	case <-sh.exited:
	case <-time.After(2 * time.Second):
		// The shell lives without its terminal: it is of no use.
		sh.proc.Close()
		<-sh.exited
	}
	// the end of the shell's output is missing
	if waitErr == nil && errors.Is(end, io.ErrUnexpectedEOF) {
		waitErr = end
	}
	sh.status, sh.lost = status, waitErr
	close(sh.ended)
	s.mu.Lock()
	if sh.idleTimer != nil {
		sh.idleTimer.Stop()
	}
	s.mu.Unlock()
	s.handleShellEnd(sh, status, waitErr)
}

// readChunk splits a chunk of the terminal's output into text and markers, and handles them in
// order.
func (s *Session) readChunk(sh *shell, chunk []byte) {
	for len(chunk) > 0 {
		var text []byte
		var m *dialect.Marker
		before := len(chunk)
		text, m, chunk = sh.scan.Next(chunk)
		sh.readBytes += int64(before - len(chunk))
		if len(text) > 0 {
			s.handleOutput(sh, text)
		}
		if m != nil {
			s.handleMarker(sh, m)
		}
	}
}

// untilQuiet returns at the terminal's end, or when everything that was printed has been read.
func (s *Session) untilQuiet(sh *shell, eof chan struct{}, got *streams.Progress) {
	for last := int64(-1); ; {
		select {
		case <-eof:
			return
		case <-s.ended:
			return
		case <-time.After(20 * time.Millisecond):
		}
		s.box.Processes.Settle(sh.proc)
		n, busy := got.Now()
		if !busy && n == last {
			return
		}
		last = n
	}
}
