package sshhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"golang.org/x/crypto/ssh"
)

// DefaultMaxSessions is the default of OpenSSH's MaxSessions.
const DefaultMaxSessions = 10

// refusalLifetime is how long the pool respects a limit that it has learned from a refusal. The
// limit may grow again: a program that outlives its channel keeps a session of the server until it
// ends.
const refusalLifetime = 30 * time.Second

// idleLimit is how long a connection other than the first is kept without a session.
const idleLimit = time.Minute

// A pool is the connections to one server. It begins with one connection. If a caller asks for a
// session and all connections are full, the pool opens another. It closes connections that have
// been idle for long, but not the first. The end of the first connection is the end of the pool.
type pool struct {
	dial        func(context.Context) (*sshconn.Conn, error) // one more connection
	maxSessions int

	// dialing is a lock: the pool makes one connection at a time, because a server drops some of
	// many new connections (MaxStartups).
	dialing chan struct{}

	mu          sync.Mutex
	connections []*member
	spare       spare // the Host's
	closed      bool
}

// A member is a connection of a pool. The pool's mu guards its fields.
type member struct {
	*sshconn.Conn
	sessions   int       // sessions that are open or being opened, from the server's view
	unreleased int       // sessions whose output the caller may still read
	used       bool      // the connection has had a session
	limit      int       // the server has refused more sessions than this
	refused    time.Time // when it refused; zero if never
	idle       time.Time // when a session was last released
}

func newPool(first *sshconn.Conn, maxSessions int,
	dial func(context.Context) (*sshconn.Conn, error)) *pool {
	return &pool{dial: dial, maxSessions: maxSessions, dialing: make(chan struct{}, 1),
		connections: []*member{{Conn: first}}}
}

// first returns the connection whose end is the end of the pool.
func (p *pool) first() *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connections[0]
}

// A session is a session channel on a connection of a pool.
type session struct {
	ssh.Channel
	requests <-chan *ssh.Request
	on       *member
	pool     *pool
}

// session opens a session channel, on a new connection if need be. If a connection other than the
// first has broken, session tries once more. The caller must call closedByServer once the server
// has closed the channel, and release once it will not read from the channel.
func (p *pool) session(ctx context.Context) (*session, error) {
	for broken := false; ; {
		on, err := p.reserve(ctx)
		if err != nil {
			return nil, err
		}
		ch, requests, err := on.Client.OpenChannel("session", nil)
		s := &session{Channel: ch, requests: requests, on: on, pool: p}
		if err == nil {
			p.mu.Lock()
			on.used = true
			p.mu.Unlock()
			return s, nil
		}
		var refusal *ssh.OpenChannelError
		refused := errors.As(err, &refusal)
		again := refused && !p.noteRefusal(on)
		s.closedByServer()
		s.release()
		switch {
		case again:
		case refused:
			return nil, fmt.Errorf("open a session: the server refuses it: %w", err)
		case !broken && on != p.first(): // nothing has been started
			broken = true
			on.Close()
		default:
			return nil, fmt.Errorf("open a session: %w", err)
		}
	}
}

// closedByServer notes that the server has closed the channel.
func (s *session) closedByServer() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.on.sessions--
}

// release notes that the caller reads no more from the channel.
func (s *session) release() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.on.unreleased--
	s.on.idle = time.Now()
}

// reserve finds a connection with room for one more session, or makes one.
func (p *pool) reserve(ctx context.Context) (*member, error) {
	if c, err := p.reserveOpen(); c != nil || err != nil {
		return c, err
	}
	select {
	case p.dialing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctxerr.Of(ctx)
	}
	defer func() { <-p.dialing }()
	if c, err := p.reserveOpen(); c != nil || err != nil { // another call has made one
		return c, err
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("open one more connection: %w", err)
	}
	c := &member{Conn: conn, sessions: 1, unreleased: 1}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.connections = append(p.connections, c)
		if len(p.connections) == 2 {
			p.connections[0].Run(p.prune)
		}
	}
	p.mu.Unlock()
	if closed {
		c.Close()
		return nil, errClosed
	}
	return c, nil
}

// reserveOpen finds an open connection with room for one more session. If there is none, it returns
// nil.
func (p *pool) reserveOpen() (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	if p.connections[0].Ended() {
		return nil, sshconn.ErrGone
	}
	for _, c := range p.connections {
		if c.sessions < p.limitLocked(c) && !c.Ended() {
			c.sessions++
			c.unreleased++
			return c, nil
		}
	}
	return nil, nil
}

// hasRoomLocked reports whether so many more sessions fit on a connection that is open.
func (p *pool) hasRoomLocked(sessions int) bool {
	return !p.closed && slices.ContainsFunc(p.connections, func(c *member) bool {
		return !c.Ended() && c.sessions+sessions <= p.limitLocked(c)
	})
}

// limitLocked returns how many sessions the connection takes, as far as that is known.
func (p *pool) limitLocked(c *member) int {
	if time.Since(c.refused) < refusalLifetime {
		return min(p.maxSessions, c.limit)
	}
	return p.maxSessions
}

var errClosed = errors.New("closed")

// noteRefusal notes that the server has refused one more session on c. It reports whether the
// server refuses even the first session of c. If so, another connection does not help. (A server
// that allows one session counts a closed one until its program has ended, so c.used matters.)
func (p *pool) noteRefusal(c *member) (hopeless bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.limit, c.refused = c.sessions-1, time.Now()
	return c.limit == 0 && !c.used
}

// prune closes connections that have been idle for idleLimit, but not the first. It returns when
// only the first is left.
func (p *pool) prune() {
	first := p.first()
	tick := time.NewTicker(idleLimit / 4)
	defer tick.Stop()
	for {
		select {
		case <-first.Stopped():
			return
		case <-tick.C:
		}
		var idle []*member
		p.mu.Lock()
		p.connections = slices.DeleteFunc(p.connections, func(c *member) bool {
			old := c != first && c.sessions == 0 && c.unreleased == 0 &&
				(c.Ended() || time.Since(c.idle) > idleLimit)
			if old {
				idle = append(idle, c)
			}
			return old
		})
		alone := len(p.connections) == 1
		p.mu.Unlock()
		for _, c := range idle {
			c.Close()
		}
		if alone {
			return
		}
	}
}

// close closes all connections and waits for their goroutines.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	connections := p.connections
	p.mu.Unlock()
	for _, c := range slices.Backward(connections) {
		c.Close()
	}
}
