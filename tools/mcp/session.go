package mcp

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/lazy"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
)

// A session is what a client's session has here.
type session struct {
	set  *lazy.Value[*tools.Set]
	life context.Context // of its calls
	stop context.CancelCauseFunc
	over chan struct{} // closed when the set is closed
}

// session returns what a client's session has. The first time, it starts the goroutine that closes it in the end.
func (s *Server) session(ss *sdk.ServerSession) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.sessions[ss]; session != nil {
		return session, nil
	}
	if s.closed {
		return nil, fmt.Errorf("mcp: %w", sandbox.ErrClosed)
	}
	session := &session{set: lazy.New(s.config.Open), over: make(chan struct{})}
	session.life, session.stop = context.WithCancelCause(context.Background())
	s.sessions[ss] = session
	s.work.Go(func() {
		defer close(session.over)
		why := ss.Wait()
		session.stop(sandbox.ErrClosed)
		err := session.set.Close()
		s.mu.Lock()
		delete(s.sessions, ss)
		s.mu.Unlock()
		s.config.Logger.Info("session ended", "session", ss.ID(), "reason", why, "closing", err)
	})
	return session, nil
}

// end ends a session and its calls, which the SDK would wait for, and waits until its set is closed.
func (s *Server) end(ss *sdk.ServerSession, why error) {
	s.mu.Lock()
	session := s.sessions[ss]
	s.mu.Unlock()
	if session != nil {
		session.stop(why)
	}
	ss.Close()
	if session != nil {
		<-session.over
	}
}

// drop waits until the set of a session that has ended is closed.
func (s *Server) drop(ss *sdk.ServerSession) {
	s.mu.Lock()
	session := s.sessions[ss]
	s.mu.Unlock()
	if session != nil {
		<-session.over
	}
}

// endCalls ends the calls of the session of that id.
func (s *Server) endCalls(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ss, session := range s.sessions {
		if id != "" && ss.ID() == id {
			session.stop(sandbox.ErrClosed)
		}
	}
}
