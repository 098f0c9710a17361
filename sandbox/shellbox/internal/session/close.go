package session

import (
	"errors"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// spawn runs f in a goroutine that Release waits for. If the session has ended, it returns why, and
// does not run f.
func (s *Session) spawn(f func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.readers.Go(f)
	}
	return s.err
}

// Fail ends the session with err for all its callers. A session that has ended keeps its error.
func (s *Session) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *Session) failLocked(err error) {
	if s.err == nil {
		s.err = err
		close(s.ended)
		if c := s.cmd; c != nil {
			s.logEndLocked(c, nil, err)
			c.limitWriters() // a writer that blocks stops the terminal's reader, and so Release
			c.endTees()
		}
	}
}

// endErr returns why the session has ended, or nil.
func (s *Session) endErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session with all processes that it has started.
func (s *Session) Close() error {
	if s.leaveBox() {
		s.dropAway()
		s.EndTree()
		s.box.Processes.KillMarked(s.box.Env.MarkOf(s.id))
	}
	s.Release()
	return nil
}

// Drop ends a session that its box does not keep. err is that of its start. isLike says that it was
// to be like another one.
func (s *Session) Drop(err error, isLike bool) {
	switch {
	case errors.As(err, new(*hostapi.NameTakenError)): // what has the id is another program's
		s.Fail(sandbox.ErrClosed)
		s.Release()
	case isLike:
		s.kill()
	default:
		s.Close()
	}
}

// kill ends a session that is like another one. Its shell gets no SIGHUP, because its traps are
// those of the other one, and may remove what that one needs.
func (s *Session) kill() {
	s.Fail(sandbox.ErrClosed)
	s.box.Processes.KillMarked(s.box.Env.MarkOf(s.id))
	s.Close()
}

// hangup ends the session and closes its terminal. The shell and its jobs get SIGHUP, as when a
// terminal's window is closed.
func (s *Session) hangup() {
	s.leaveBox()
	s.Release()
}

// leaveBox ends the session for its callers. It reports whether the session was one of the box's.
func (s *Session) leaveBox() (open bool) {
	open = s.box.Leave(s.id)
	s.Fail(sandbox.ErrClosed)
	return open
}

// Release closes the terminal and waits for the session's goroutines, after Fail.
func (s *Session) Release() {
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
