package shellbox

import (
	"errors"

	"github.com/sandshell/sandshell/internal/hostapi"
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

// fail ends the session with err for all its callers. A session that has ended keeps its error.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *session) failLocked(err error) {
	if s.err == nil {
		s.err = err
		close(s.ended)
		if c := s.cmd; c != nil {
			s.logEndLocked(c, nil, err)
			c.limitWriters() // a writer that blocks stops the terminal's reader, and so release
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
	if s.leaveBox() {
		s.dropAway()
		s.box.processes.KillMarked(s.box.markOf(s.id))
	}
	s.release()
	return nil
}

// hangup ends the session and closes its terminal. The shell and its jobs get SIGHUP, as when a
// terminal's window is closed.
func (s *session) hangup() {
	s.leaveBox()
	s.release()
}

// leaveBox ends the session for its callers. It reports whether the session was one of the box's.
func (s *session) leaveBox() (open bool) {
	s.box.mu.Lock()
	_, open = s.box.sessions[s.id]
	delete(s.box.sessions, s.id)
	s.box.mu.Unlock()
	s.fail(sandbox.ErrClosed)
	return open
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

// Close ends all sessions, jobs and calls with all processes that they started, and closes the
// host. A Box from Join leaves sessions and jobs to the other programs. Close returns when
// everything is gone. Later calls wait for the first and return what it returned.
func (b *Box) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		<-b.down
		return b.downErr
	}
	b.closed = true
	if b.joined { // the others go on
		b.host.(hostapi.Keeper).Detach()
		b.detached = true
	}
	b.mu.Unlock()
	return b.shutDown()
}

// shutDown ends the box, which has been marked as closed.
func (b *Box) shutDown() error {
	defer close(b.down)
	close(b.closing)
	b.calls.Wait()
	b.closeViews()
	b.mu.Lock()
	sessions := b.sessions
	b.sessions = map[string]*session{}
	jobs, detached := b.jobs, b.detached
	b.mu.Unlock()
	b.network.Close()
	b.files.CloseWatches()
	var lost error
	if detached {
		lost = b.handOver(sessions)
	}
	for _, s := range sessions {
		s.fail(sandbox.ErrClosed)
	}
	if len(sessions)+len(jobs) > 0 && !detached {
		b.processes.KillMarked(b.mark)
	}
	for _, s := range sessions {
		s.release()
	}
	for _, j := range jobs {
		j.release()
	}
	b.files.Close() // before control, which kills the shells of calls under way
	if b.control != nil {
		b.control.Close()
	}
	b.downErr = errors.Join(lost, b.release())
	return b.downErr
}

// closeViews closes the boxes of other users.
func (b *Box) closeViews() {
	b.mu.Lock()
	views := b.views
	b.views = nil
	b.mu.Unlock()
	for v := range views {
		v.Close()
	}
}

// release closes the host, if it is the box's own.
func (b *Box) release() error {
	if b.owner != nil {
		b.owner.mu.Lock()
		delete(b.owner.views, b)
		b.owner.mu.Unlock()
		return nil
	}
	return b.host.Close()
}

// isClosed reports whether Close has begun.
func (b *Box) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}
