package egress

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// A dest is what a connection is for. Requests in it are for no other.
type dest struct {
	via  string // as in Event
	host string // normal; "" on a proxy's connection, whose requests each have their own
	port int
	tls  bool

	program string // as in Event
	pid     int
	session string
}

// A conn is a connection from the box.
type conn struct {
	net.Conn
	r    *bufio.Reader // of Conn
	in   *inbound      // between r and Conn
	dest dest

	of     *connections
	idle   time.Time // since when; zero if it is at work; guarded by of.mu
	tunnel *wish     // what it carries, if nobody looks into it; guarded by of.mu
	close  sync.Once
	closed error
}

// An inbound reads a connection, at most left bytes if that is not negative.
type inbound struct {
	net.Conn
	left int
}

var errTooLong = errors.New("the head of the request is too long")

// Read implements io.Reader.
func (i *inbound) Read(p []byte) (int, error) {
	if i.left < 0 {
		return i.Conn.Read(p)
	}
	if i.left == 0 {
		return 0, errTooLong
	}
	n, err := i.Conn.Read(p[:min(len(p), i.left)])
	i.left -= n
	return n, err
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) { return c.r.Read(p) }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.close.Do(func() {
		c.closed = c.Conn.Close()
		c.of.remove(c)
	})
	return c.closed
}

// CloseWrite says that no more bytes follow.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// setIdle says whether the connection waits for a request.
func (c *conn) setIdle(idle bool) {
	c.of.mu.Lock()
	c.idle = time.Time{}
	if idle {
		c.idle = time.Now()
	}
	c.of.mu.Unlock()
	if idle {
		c.of.signal()
	}
}

// connections are those of one box.
type connections struct {
	most  int
	done  <-chan struct{}
	freed chan struct{} // has one when there may be room

	mu  sync.Mutex
	all map[*conn]bool
}

func newConnections(most int, done <-chan struct{}) *connections {
	return &connections{most: most, done: done, freed: make(chan struct{}, 1),
		all: map[*conn]bool{}}
}

// add adds a connection. If there are too many, it closes the one that has been idle the longest,
// or waits. It returns nil if the Exit is closed.
func (cs *connections) add(raw net.Conn) *conn {
	in := &inbound{Conn: raw, left: headerBytes}
	c := &conn{Conn: raw, in: in, r: bufio.NewReaderSize(in, 8<<10), of: cs, idle: time.Now()}
	for {
		cs.mu.Lock()
		if len(cs.all) < cs.most {
			cs.all[c] = true
			more := len(cs.all) < cs.most
			cs.mu.Unlock()
			if more { // another add may wait
				cs.signal()
			}
			return c
		}
		oldest := cs.oldestIdleLocked()
		cs.mu.Unlock()
		if oldest != nil {
			_ = oldest.Close()
			continue
		}
		select {
		case <-cs.freed:
		case <-cs.done:
			_ = raw.Close()
			return nil
		}
	}
}

func (cs *connections) oldestIdleLocked() (oldest *conn) {
	for c := range cs.all {
		if !c.idle.IsZero() && (oldest == nil || c.idle.Before(oldest.idle)) {
			oldest = c
		}
	}
	return oldest
}

func (cs *connections) remove(c *conn) {
	cs.mu.Lock()
	delete(cs.all, c)
	cs.mu.Unlock()
	cs.signal()
}

// signal says that there may be room.
func (cs *connections) signal() {
	select {
	case cs.freed <- struct{}{}:
	default:
	}
}

// carries notes what a connection carries that nobody looks into.
func (cs *connections) carries(c *conn, w *wish) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.idle, c.tunnel = time.Time{}, w
}

// cut closes the connections that carry what the rules do not allow.
func (cs *connections) cut(p *policy) {
	cs.closeIf(func(c *conn) bool { return c.tunnel != nil && !p.keeps(c.tunnel) })
}

func (cs *connections) closeAll() { cs.closeIf(func(*conn) bool { return true }) }

func (cs *connections) closeIf(condition func(*conn) bool) {
	var list []*conn
	cs.mu.Lock()
	for c := range cs.all {
		if condition(c) {
			list = append(list, c)
		}
	}
	cs.mu.Unlock()
	for _, c := range list {
		_ = c.Close()
	}
}
