package shellbox

import (
	"errors"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

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
	b.sessions = map[string]*session.Session{}
	jobs, detached := b.jobs, b.detached
	b.mu.Unlock()
	b.network.Close()
	b.files.CloseWatches()
	var lost error
	if detached {
		lost = b.handOver(sessions)
	}
	for _, s := range sessions {
		s.Fail(sandbox.ErrClosed)
	}
	if len(sessions)+len(jobs) > 0 && !detached {
		for _, s := range sessions {
			s.EndTree()
		}
		b.processes.KillMarked(b.env.Mark)
	}
	for _, s := range sessions {
		s.Release()
	}
	for _, j := range jobs {
		j.Release()
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
