package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/tools"
	"github.com/sandshell/sandshell/tools/internal/lazy"
)

// A session is what a client's session has here.
type session struct {
	set  *lazy.Value[*tools.Set]
	life context.Context // of its calls
	stop context.CancelCauseFunc

	// over is closed when the set is closed; then reason is why the session ended.
	over   chan struct{}
	reason error
}

// endGrace is how long a session that this side ends waits for the SDK. The SDK waits until each
// answer is written, and a client can leave them unread for ever.
const endGrace = 10 * time.Second

// session returns what a client's session has. The first time, it starts the goroutine that closes
// it in the end.
func (s *Server) session(ss *sdk.ServerSession) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.sessions[ss]; session != nil {
		return session, nil
	}
	if s.closed {
		return nil, fmt.Errorf("mcp: %w", sandbox.ErrClosed)
	}
	if ss.ID() != "" && s.config.MaxSessions > 0 && len(s.sessions) >= s.config.MaxSessions {
		return nil, fmt.Errorf("mcp: there are %d sessions, and the server takes no more at a "+
			"time: "+
			"try again when one has ended", len(s.sessions))
	}
	session := &session{set: lazy.New(s.open), over: make(chan struct{})}
	session.life, session.stop = context.WithCancelCause(context.Background())
	s.sessions[ss] = session
	s.work.Go(func() {
		defer close(session.over)
		session.reason = session.wait(ss, s.grace)
		session.stop(sandbox.ErrClosed)
		err := guard.Call("the Close of a session's tools", session.set.Close)
		s.mu.Lock()
		delete(s.sessions, ss)
		s.mu.Unlock()
		s.config.Logger.Info("session ended", "session", ss.ID(), "reason", session.reason,
			"closing", err)
	})
	return session, nil
}

// open makes a session's tools.
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

// wait waits for the end of the session, and returns the SDK's reason. If this side ends it, by
// stop, wait waits no longer than grace.
func (s *session) wait(ss *sdk.ServerSession, grace time.Duration) error {
	context.AfterFunc(s.life, func() { ss.Close() })
	ended := make(chan error, 1)
	go func() { ended <- ss.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-s.life.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		return context.Cause(s.life)
	}
}
