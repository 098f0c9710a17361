package shellbox

import (
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
)

// ends takes how the command has ended; s.mu is held. The shell waits for the next line. What the
// command may have left has to be dealt with first: input that it has not read, an interrupt that
// is on its way.
func (s *session) ends(c *command, r *sandbox.Result) {
	c.phase, c.result = ending, r
	c.changed.Send()
	switch {
	case c.killing: // kill goes on
	case c.once, c.typed == 0 && !c.replied && !s.mayBeOOM(c, r):
		s.ended(c, r)
	default:
		typed, keyed := c.typed > 0 || c.replied, c.keyed
		s.readers.Go(func() { s.windUp(c, typed, keyed) })
	}
}

// ended ends the command under way, as soon as its followers have got all of its output; s.mu is
// held. So the next command's followers, which may be the same writers, get nothing before.
func (s *session) ended(c *command, r *sandbox.Result) {
	c.silence()
	for _, t := range c.follows {
		if t.Mark().Pending() != nil {
			c.phase, c.result = ending, r
			s.readers.Go(func() { s.followed(c, t) })
			return
		}
	}
	s.cmd = nil
	s.alternate = c.out.FullScreen()
	s.box.touch()
	if c.calls == 0 {
		s.unseen = c
	}
	c.end(r)
	s.logEnd(c, r, nil)
}

// followed ends the command under way when one of its followers has got everything.
func (s *session) followed(c *command, t *output.Tee) {
	select {
	case <-t.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended(c, c.result)
	case <-s.gone:
	}
}

// windUp ends a command whose shell is at its prompt again. typed says that there may be input that
// nobody has read, and interrupted that a signal may still be on its way to the shell.
func (s *session) windUp(c *command, typed, interrupted bool) {
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
		s.confirm(sh)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == c && c.phase == ending {
		c.result.Unread += min(unread+len(c.ahead), c.typed)
		c.result.OOM = oom
		s.ended(c, c.result)
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
		case <-sh.over:
			return n
		case <-s.gone:
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
		close(s.gone)
		if c := s.cmd; c != nil {
			s.logEnd(c, nil, err)
			c.hurry() // they may keep the terminal's reader waiting, which release waits for
			c.silence()
		}
	}
}

// over returns why the session is over, nil if it is not.
func (s *session) over() error {
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
