package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
)

// commandReturnedLocked takes how the command has ended; s.mu is held. The shell waits for the next
// line. What the command may have left has to be dealt with first: input that it has not read, an
// interrupt that is on its way.
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

// finishCommandLocked ends the command under way, as soon as its followers have got all of its
// output; s.mu is held. So the next command's followers, which may be the same writers, get nothing
// before.
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

// finishWhenWritten ends the command under way when one of its followers has got everything.
func (s *session) finishWhenWritten(c *command, t *output.Tee) {
	select {
	case <-t.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finishCommandLocked(c, c.result)
	case <-s.ended:
	}
}

// cleanUp ends a command whose shell is at its prompt again. typed says that there may be input
// that nobody has read, and interrupted that a signal may still be on its way to the shell.
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

// discard drops all input that no program has read, and returns how much that was.
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

// spawn runs f in a goroutine that release waits for. It returns why not if the session is over.
func (s *session) spawn(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.readers.Go(f)
	}
	return s.err
}

// fail ends the session for all its callers.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.ended)
		if c := s.cmd; c != nil {
			s.logEndLocked(c, nil, err)
			c.limitWriters() // they may keep the terminal's reader waiting, which release waits for
			c.endTees()
		}
	}
}

// endErr returns why the session is over, nil if it is not.
func (s *session) endErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session with all processes that it has started.
func (s *session) Close() error {
	s.box.mu.Lock()
	_, open := s.box.sessions[s.id]
	delete(s.box.sessions, s.id)
	s.box.mu.Unlock()
	s.fail(sandbox.ErrClosed)
	if open {
		s.box.killMarked(s.box.markOf(s.id))
	}
	s.release()
	return nil
}

// hangup closes the terminal: the shell and its jobs get SIGHUP, as with a terminal's window. The
// session is over.
func (s *session) hangup() {
	s.box.mu.Lock()
	delete(s.box.sessions, s.id)
	s.box.mu.Unlock()
	s.fail(sandbox.ErrClosed)
	s.release()
}

// release lets go of the terminal and waits for the session's goroutines.
func (s *session) release() {
	s.mu.Lock()
	sh, c := s.sh, s.cmd
	s.mu.Unlock()
	if sh != nil {
		sh.proc.Close()
	}
	s.readers.Wait()
	if c != nil {
		for _, t := range c.follows {
			<-t.Done()
		}
	}
}
