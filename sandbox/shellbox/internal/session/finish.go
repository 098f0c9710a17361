package session

import (
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// commandReturnedLocked records how the command has ended, when the shell is back. What the command
// may have left is dealt with first: input that it has not read, an interrupt on its way.
func (s *Session) commandReturnedLocked(c *command, r *sandbox.Result) {
	if !s.advanceLocked(c, phase.ShellReturned) {
		return
	}
	c.result = r
	c.changed.Send()
	switch {
	case c.phase.Killed(): // the killing goes on
	case c.isJob, c.typed == 0 && !c.terminalReplied && !s.mayBeOOM(c, r):
		s.finishCommandLocked(c, r)
	default:
		typed, interrupted := c.typed > 0 || c.terminalReplied, c.interruptTyped
		s.readers.Go(func() { s.cleanUp(c, typed, interrupted) })
	}
}

// finishCommandLocked ends the unfinished command as soon as its followers have all of its output.
// The next command's followers may be the same writers: they must get nothing earlier.
func (s *Session) finishCommandLocked(c *command, r *sandbox.Result) {
	c.endTees()
	for _, t := range c.follows {
		if t.Mark().Pending() != nil {
			if !s.advanceLocked(c, phase.WritersLag) {
				return
			}
			c.result = r
			s.readers.Go(func() { s.finishWhenWritten(c, t) })
			return
		}
	}
	if !s.advanceLocked(c, phase.Finished) {
		return
	}
	s.cmd, s.lastEnd = nil, time.Now()
	if !c.quiet {
		s.alternate = c.out.FullScreen()
	}
	s.box.Touch()
	if c.calls == 0 && !c.quiet {
		s.unreported = c
	}
	c.completeLocked(r)
	s.logEndLocked(c, r, nil)
}

// finishWhenWritten ends the unfinished command when its follower t has all of the output.
func (s *Session) finishWhenWritten(c *command, t *output.Tee) {
	select {
	case <-t.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finishCommandLocked(c, c.result)
	case <-s.ended:
	}
}

// cleanUp finishes a command whose shell is at its prompt again. If typed is set, there may be
// input that no program has read. If interrupted is set, a signal may be on its way to the shell.
func (s *Session) cleanUp(c *command, typed, interrupted bool) {
	s.mu.Lock()
	endsAt := c.endsAt
	s.mu.Unlock()
	oom := s.oomKilled(c)
	unread := 0
	if typed && !(c.sh.keys.Idle() && s.box.Processes.AllRead(c.sh.proc, endsAt)) {
		unread = s.discard(c.sh)
	}
	if interrupted {
		s.box.Processes.Settle(c.sh.proc)
		s.confirmShell(c.sh)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == c && c.phase == phase.Returned {
		c.result.Unread += min(unread+len(c.typedAhead), c.typed)
		c.result.OOM = oom
		s.finishCommandLocked(c, c.result)
	}
}

// discard drops all input that no program has read, and returns how many bytes that was.
func (s *Session) discard(sh *shell) int {
	n := sh.keys.Drop()
	for {
		busy := !sh.keys.Idle()
		n += s.box.Processes.Discard(sh.proc)
		if !busy {
			return n
		}
		select {
		case <-sh.ended:
			return n
		case <-s.ended:
			return n
		case <-time.After(time.Millisecond):
		}
	}
}

// oomKilled reports whether the kernel has killed a process because memory had run out, since c
// began. If c is nil, it is the command under way. Once the shell has been closed, the host no
// longer knows.
func (s *Session) oomKilled(c *command) bool {
	s.mu.Lock()
	if c == nil {
		c = s.cmd
	}
	if c == nil || c.sh == nil || s.err != nil {
		s.mu.Unlock()
		return false
	}
	p, since, shown := c.sh.proc, c.offset, c.endsAt
	s.mu.Unlock()
	return s.box.Processes.OOMKilled(p, since, shown)
}

// mayBeOOM reports whether the host must be asked whether memory had run out: to ask takes as long
// as a fast command. A command that exits with 0 within quietMin is not asked about. The kernel
// takes longer to look for a victim, to kill it and to log that.
func (s *Session) mayBeOOM(c *command, r *sandbox.Result) bool {
	return s.box.Processes.TellsOOM() && (r.ExitCode != 0 || time.Since(c.began) > quietMin)
}
