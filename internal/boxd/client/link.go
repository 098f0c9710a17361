package client

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/broadcast"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
)

// A link is the connection to a boxd. If it is cut, the link makes a new one and finds again the
// programs that were started through it, which have gone on running.
type link struct {
	host *Host
	log  *slog.Logger
	*sshconn.Group

	mu        sync.Mutex
	current   *sshconn.Conn    // nil while it is cut
	change    broadcast.Signal // sent when current or lost changes
	detached  bool             // programs are left running
	lost      error            // why there will be no connection; nil while there may be one
	programs  map[string]*remote
	listeners map[string]*listener
	// runOn has the ids of programs that were let go and are to go on: boxd must not release them.
	runOn map[string]struct{}
}

// redialFirst and redialMost are the first and the longest pause between attempts to connect again.
const (
	redialFirst = 20 * time.Millisecond
	redialMost  = time.Second
)

func newLink(h *Host) *link {
	return &link{host: h, log: h.Logger, Group: sshconn.NewGroup(),
		programs: map[string]*remote{}, listeners: map[string]*listener{},
		runOn: map[string]struct{}{}}
}

// watch replaces the current connection when it is cut.
func (l *link) watch(conn *sshconn.Conn) {
	conn.Keep(keepaliveInterval, keepaliveMisses)
	conn.OnNotice(func(name string) {
		if name == wire.OwnersRequest {
			if !l.host.shared.Swap(true) {
				l.log.Info("another program uses the box too")
			}
		}
	})
	conn.OnEnd(func() { l.Run(func() { l.replace(conn) }) })
}

// replace makes a connection in place of one that was cut.
func (l *link) replace(cut *sshconn.Conn) {
	l.setCurrent(nil, nil)
	reason, _ := cut.Reason()
	// Nothing is logged if the box is gone or being closed, because the calls' errors say so, or if
	// it is paused, because whoever pauses a box knows.
	warn := sync.OnceFunc(func() {
		l.log.Warn("the connection to the box was cut: making a new one", "reason", reason)
	})
	cut.Close()
	began := time.Now()
	next, err := l.redial(began, warn)
	if err != nil {
		l.setCurrent(nil, err)
		l.endListeners(l.host.explain(err))
		return
	}
	l.log.Info("the connection to the box is there again", "after", time.Since(began))
	l.setCurrent(next, nil)
	l.watch(next)
}

// After 6 to 8 s without an answer the connection is ended: the container is paused, its engine is
// silent, or a byte was changed on the way. With the time that a new connection takes, a call that
// waits for an answer gets it within 10 s.
const (
	keepaliveInterval = 2 * time.Second
	keepaliveMisses   = 3
)

// attemptLimit bounds the first attempt to connect again, by default.
const attemptLimit = 8 * time.Second

// noAnswer is the cause of an attempt's end. It is not context.DeadlineExceeded, because the
// caller's context has not ended.
func noAnswer(limit time.Duration) error { return fmt.Errorf("no answer within %v", limit) }

// warnAfter is how long redial tries before it warns. When a box is removed, its connection ends
// before the engine says that it is gone.
const warnAfter = time.Second

// redial connects again, and finds the programs again. It calls warn when it has connected or has
// tried for warnAfter, but not if the box was paused.
func (l *link) redial(began time.Time, warn func()) (*sshconn.Conn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !l.Run(func() {
		select {
		case <-l.Stopped():
			cancel()
		case <-ctx.Done():
		}
	}) {
		return nil, sandbox.ErrClosed
	}
	paused, limit := false, l.host.Attempt
	for pause := redialFirst; ; pause = min(2*pause, redialMost) {
		attempt, done := ctxerr.WithLimit(ctx, limit, noAnswer(limit))
		conn, err := l.host.openConn(attempt, false)
		if err == nil {
			if err = l.resume(attempt, conn); err != nil {
				conn.Close()
			}
		}
		late := attempt.Err() != nil
		done()
		if err == nil {
			if !paused {
				warn()
			}
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, sandbox.ErrClosed
		}
		l.log.Debug("connect to the box again", "error", err)
		var lost error
		lost, paused = l.host.diagnose(ctx, err)
		if lost != nil {
			return nil, lost
		}
		if paused {
			began = time.Now()
		}
		tried := time.Since(began)
		if tried > warnAfter {
			warn()
		}
		if tried > l.host.Patience {
			return nil, fmt.Errorf("no connection for %v: %w", tried.Round(time.Second), err)
		}
		if late { // a busy machine may need longer
			limit = max(l.host.Attempt, min(2*limit, l.host.Patience-tried))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, sandbox.ErrClosed
		}
	}
}

// resume tells boxd which programs and listeners are still wanted, and continues the programs.
func (l *link) resume(ctx context.Context, conn *sshconn.Conn) error {
	l.mu.Lock()
	ids := slices.AppendSeq([]string{}, maps.Keys(l.runOn))
	var programs []*remote
	for id, p := range l.programs {
		ids = append(ids, id)
		programs = append(programs, p)
	}
	ids = slices.AppendSeq(ids, maps.Keys(l.listeners))
	listeners := slices.Collect(maps.Values(l.listeners))
	l.mu.Unlock()
	if err := releaseOthers(ctx, conn, ids); err != nil {
		return err
	}
	var wait sync.WaitGroup
	errs := make([]error, len(programs)+len(listeners))
	for i, p := range programs {
		wait.Go(func() { errs[i] = p.openOn(ctx, conn) })
	}
	for i, on := range listeners {
		wait.Go(func() { errs[len(programs)+i] = on.again(ctx, conn) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// releaseOthers tells boxd to release all programs and to end all listeners but these.
func releaseOthers(ctx context.Context, conn *sshconn.Conn, ids []string) error {
	payload, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	_, err = requestOn(ctx, conn, wire.HoldRequest, payload, true)
	return err
}

// setCurrent changes the connection, or says why there will be none.
func (l *link) setCurrent(conn *sshconn.Conn, lost error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.lost = conn, lost
	l.change.Send()
	if lost != nil {
		for _, p := range l.programs {
			p.markLost()
		}
	}
}

// connection returns the connection. While it is cut, connection waits for the next one.
func (l *link) connection(ctx context.Context) (*sshconn.Conn, error) {
	for {
		l.mu.Lock()
		conn, lost, change := l.current, l.lost, l.change.Wait()
		l.mu.Unlock()
		switch {
		case lost != nil:
			return nil, lost
		case conn != nil && !conn.Ended():
			return conn, nil
		}
		select { // conn is nil, or it has ended and replace has not begun yet
		case <-change:
		case <-l.Stopped():
			return nil, sandbox.ErrClosed
		case <-ctx.Done():
			return nil, ctxerr.Of(ctx)
		}
	}
}

// lostCause returns why there will be no connection; nil if there is one or may be.
func (l *link) lostCause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// close ends the connection, and waits for all that ran on it.
func (l *link) close() {
	l.Stop()
	l.endListeners(sandbox.ErrClosed)
	l.mu.Lock()
	conn := l.current
	l.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	l.Wait()
	l.mu.Lock() // a connection may have been made meanwhile
	last := l.current
	for _, p := range l.programs {
		p.markLost()
	}
	l.mu.Unlock()
	if last != nil && last != conn {
		last.Close()
	}
}
