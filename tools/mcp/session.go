package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/sandshell/sandshell/tools/internal/lazy"
)

// A session is the server's part of a session of the SDK: it has the tools, and ends the calls.
type session struct {
	sdk  *sdk.ServerSession
	set  *lazy.Value[*tools.Set]
	once sync.Once // of stop

	stopped chan struct{} // closed when stop is called
	cause   error         // why stop was called; set before stopped is closed

	ended chan struct{} // closed when the set is closed
	err   error         // why the session ended; set before ended is closed
}

// endGrace is how long the end of a session by the server waits for the SDK. The SDK waits until
// each answer is written, and a client may leave answers unread for ever.
const endGrace = 10 * time.Second

// sessionOf returns the session that belongs to a session of the SDK. The first time, it makes the
// session, and starts a goroutine that waits for its end and closes its set.
func (s *Server) sessionOf(ss *sdk.ServerSession) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.sessions[ss]; session != nil {
		return session, nil
	}
	if s.closed {
		return nil, fmt.Errorf("mcp: %w", sandbox.ErrClosed)
	}
	if ss.ID() != "" && s.config.MaxSessions > 0 && len(s.sessions) >= s.config.MaxSessions {
		return nil, fmt.Errorf("mcp: the server has %d sessions, and takes no more at a time: try "+
			"again when one has ended", len(s.sessions))
	}
	session := &session{
		sdk: ss, set: lazy.New(s.open), stopped: make(chan struct{}), ended: make(chan struct{}),
	}
	s.sessions[ss] = session
	s.work.Go(func() {
		defer close(session.ended)
		session.err = session.wait(s.grace)
		session.stop(sandbox.ErrClosed)
		err := guard.Call("the Close of a session's tools", session.set.Close)
		s.mu.Lock()
		delete(s.sessions, ss)
		s.mu.Unlock()
		s.config.Logger.Info("session ended", "session", ss.ID(), "reason", session.err,
			"closing", err)
	})
	return session, nil
}

// stop ends the session and its calls, and does not wait for their end. Only the first call does
// anything.
func (s *session) stop(cause error) {
	s.once.Do(func() {
		s.cause = cause
		close(s.stopped)
		go s.sdk.Close() // waits for the client: see endGrace
	})
}

// context returns a context for a call, which ends with ctx or with the session. Call done at the
// call's end.
func (s *session) context(ctx context.Context) (call context.Context, done func()) {
	call, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.stopped:
			cancel(s.cause)
		case <-call.Done():
		}
	}()
	return call, func() { cancel(nil); <-watched }
}

// open calls Config.Open. A panic is an error.
func (s *Server) open(ctx context.Context) (set *tools.Set, err error) {
	err = guard.Call("Config.Open", func() error {
		set, err = s.config.Open(ctx)
		return err
	})
	if err == nil && set == nil {
		err = errors.New("Config.Open returned neither tools nor an error")
	}
	return set, err
}

// wait waits for the end of the session, and returns the SDK's reason for it. After stop, wait
// waits no longer than grace, and then returns the cause of stop.
func (s *session) wait(grace time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- s.sdk.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-s.stopped:
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		return s.cause
	}
}
