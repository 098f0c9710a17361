package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// An Exit is the way out of one box. All its methods may be called concurrently.
type Exit struct {
	gate  *Gate
	name  string // for Events
	ca    *authority
	key   attachKey
	token string // that clients must show; "" if only the box can connect
	swaps []*swap

	conns   *connections
	meter   *meter
	asking  asking
	running chan struct{}   // as full as requests are under way
	server  *http.Server    // of plain requests and of those in TLS
	serving chan struct{}   // closed when server has ended
	ready   chan net.Conn   // for server
	done    <-chan struct{} // closed by shut
	cancel  context.CancelFunc

	shutOnce sync.Once
	settled  *settlement // nil if there is no box
	close    sync.Once
	closeErr error

	mu          sync.Mutex
	extra       []Rule  // of Allow
	denied      []Event // the last ones
	deniedCount int
	transports  map[route]*http.Transport
	closed      bool
	active      sync.WaitGroup // connections and requests; added to while mu is held
}

const (
	firstByte   = 10 * time.Second // the longest time until a connection says what it is
	idleTime    = time.Minute
	headerBytes = 64 << 10
	streams     = 100 // of a connection with HTTP/2
	// shutTime bounds the wait for callers' functions, which may block.
	shutTime = 5 * time.Second
)

// newExit returns an Exit that nothing connects to yet. The caller closes it, until add.
func (g *Gate) newExit(kind, token string, key attachKey) (*Exit, error) {
	ca, err := newAuthority(key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	limits := g.config.Limits
	ctx, cancel := context.WithCancel(context.Background())
	x := &Exit{
		gate: g, ca: ca, key: key, token: token, swaps: g.newSwaps(key),
		running: make(chan struct{}, limits.Conns), meter: newMeter(limits),
		serving: make(chan struct{}), ready: make(chan net.Conn), done: ctx.Done(), cancel: cancel,
		transports: map[route]*http.Transport{},
	}
	x.conns = newConnections(limits.Conns, x.done)
	x.server = &http.Server{
		Handler: http.HandlerFunc(x.serveRequest), ReadHeaderTimeout: firstByte,
		IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		DisableGeneralOptionsHandler: true,
		HTTP2:                        &http.HTTP2Config{MaxConcurrentStreams: streams},
		ErrorLog:                     log.New(io.Discard, "", 0),
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, connOf(c))
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state != http.StateNew { // until its first request it is as idle as it was
				connOf(c).setIdle(state == http.StateIdle)
			}
		},
	}
	g.mu.Lock()
	g.count++
	x.name = fmt.Sprintf("%s-%d", kind, g.count)
	g.mu.Unlock()
	go func() {
		defer close(x.serving)
		_ = x.server.Serve((*readyListener)(x))
	}()
	return x, nil
}

// Allow adds rules for this box only, such as "POST https://api.example.com/upload". They hold from
// now on. The error wraps a *RuleError; then none was added.
func (x *Exit) Allow(rules ...string) error {
	p, err := newPolicy(Rules(rules...), nil, "rules", "")
	if err != nil {
		return fmt.Errorf("allow: %w", err)
	}
	x.allow(p.allow)
	return nil
}

func (x *Exit) allow(rules []Rule) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.extra = append(slices.Clip(x.extra), rules...)
}

// rules returns the rules of this moment.
func (x *Exit) rules() *policy {
	x.mu.Lock()
	extra := x.extra
	x.mu.Unlock()
	return x.gate.policy.Load().with(extra)
}

// begin counts something that shut waits for. It returns false if the Exit is closed.
func (x *Exit) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.active.Add(1)
	}
	return !x.closed
}

// shut ends all connections, and waits for what is under way.
func (x *Exit) shut() { x.shutOnce.Do(x.shutNow) }

func (x *Exit) shutNow() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.cancel()
	_ = x.server.Close()
	x.conns.closeAll()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		x.active.Wait()
		<-x.serving
	}()
	limit := time.NewTimer(shutTime)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
	}
	x.mu.Lock()
	for _, t := range x.transports {
		t.CloseIdleConnections()
	}
	x.mu.Unlock()
	x.gate.mu.Lock()
	delete(x.gate.exits, x)
	x.gate.mu.Unlock()
}

// A readyListener gives the server the connections that are ready for it.
type readyListener Exit

// Accept implements net.Listener.
func (l *readyListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *readyListener) Close() error { return nil }

// Addr implements net.Listener.
func (l *readyListener) Addr() net.Addr { return &net.TCPAddr{} }

// hand gives a connection to the server, which closes it.
func (x *Exit) hand(c net.Conn) {
	select {
	case x.ready <- c:
	case <-x.done:
		c.Close()
	}
}

type connKey struct{}

// connOf returns the connection under TLS.
func connOf(c net.Conn) *conn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*conn)
}
