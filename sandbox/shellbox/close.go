package shellbox

import (
	"github.com/sandshell/sandshell/sandbox"
)

// spawn runs f in a goroutine that release waits for. If the session has ended, it returns why, and
// does not run f.
func (s *session) spawn(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.readers.Go(f)
	}
	return s.err
}

// fail ends the session for all its callers, because of err.
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

// endErr returns why the session has ended, or nil.
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

// hangup ends the session and closes its terminal. The shell and its jobs get SIGHUP, as when a
// terminal's window is closed.
func (s *session) hangup() {
	s.box.mu.Lock()
	delete(s.box.sessions, s.id)
	s.box.mu.Unlock()
	s.fail(sandbox.ErrClosed)
	s.release()
}

// release closes the terminal and waits for the session's goroutines.
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
