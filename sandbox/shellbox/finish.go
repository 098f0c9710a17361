package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
)

// commandReturnedLocked records how the command has ended, when the shell is back. What the command
// may have left is dealt with first: input that it has not read, an interrupt on its way.
func (s *session) commandReturnedLocked(c *command, r *sandbox.Result) {
	if !s.advanceLocked(c, shellReturned) {
		return
	}
	c.result = r
	c.changed.Send()
	switch {
	case c.phase.killed(): // kill goes on
	case c.isJob, c.typed == 0 && !c.terminalReplied && !s.mayBeOOM(c, r):
		s.finishCommandLocked(c, r)
	default:
		typed, keyed := c.typed > 0 || c.terminalReplied, c.interruptTyped
		s.readers.Go(func() { s.cleanUp(c, typed, keyed) })
	}
}

// finishCommandLocked ends the unfinished command as soon as its followers have all of its output.
// So the next command's followers, which may be the same writers, get nothing before.
func (s *session) finishCommandLocked(c *command, r *sandbox.Result) {
	c.endTees()
	for _, t := range c.follows {
		if t.Mark().Pending() != nil {
			if !s.advanceLocked(c, writersLag) {
				return
			}
			c.result = r
			s.readers.Go(func() { s.finishWhenWritten(c, t) })
			return
		}
	}
	if !s.advanceLocked(c, finished) {
		return
	}
	s.cmd = nil
	s.alternate = c.out.FullScreen()
	s.box.touch()
	if c.calls == 0 {
		s.unreported = c
	}
	c.completeLocked(r)
	s.logEndLocked(c, r, nil)
}

// finishWhenWritten ends the unfinished command when its follower t has all of the output.
func (s *session) finishWhenWritten(c *command, t *output.Tee) {
	select {
	case <-t.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finishCommandLocked(c, c.result)
	case <-s.ended:
	}
}

// cleanUp finishes a command whose shell is at its prompt again. typed says that there may be input
// that no program has read. interrupted says that a signal may be on its way to the shell.
func (s *session) cleanUp(c *command, typed, interrupted bool) {
	s.mu.Lock()
	sh := s.sh
	s.mu.Unlock()
	oom := s.oomKilled(c)
	unread := 0
	if typed {
		unread = s.discard(sh)
	}
	if interrupted {
		s.box.settle(sh.proc)
		s.confirmShell(sh)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == c && c.phase == returned {
		c.result.Unread += min(unread+len(c.typedAhead), c.typed)
		c.result.OOM = oom
		s.finishCommandLocked(c, c.result)
	}
}

// discard drops all input that no program has read, and returns how many bytes that was.
func (s *session) discard(sh *shell) int {
	n := sh.keys.drop()
	for {
		busy := !sh.keys.idle()
		n += s.box.discard(sh.proc)
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
