// Package faulttest provides a Wire, a proxy that can cut, delay, stall, half-close and corrupt the
// connections that it carries. The package's own tests are the fault run: boxes that work while
// faults hit them. "make faults" prints its table.
package faulttest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Wire carries connections to a server. Its methods may be called from several goroutines.
type Wire struct {
	l       net.Listener
	network string
	stream  func(piece []byte) bool

	mu     sync.Mutex
	server string // the address to which new connections go
	pairs  map[*pair]struct{}
	dead   bool // new connections are cut too
	wg     sync.WaitGroup

	delay  atomic.Int64 // time.Duration, for each piece
	passed atomic.Int64 // bytes, both ways
}

// A Way is one direction of a Wire, or both.
type Way int

const (
	Up   Way = 1 << iota // to the server
	Down                 // from it
	Both = Up | Down
)

// NewWire listens at an address for connections to network and server. Faults other than cuts and
// delays hit only connections that are streams. stream tells, from a piece that went to the server,
// whether its connection is one. If stream is nil, all connections are.
func NewWire(listenNetwork, listenAddress, network, server string,
	stream func(piece []byte) bool) (*Wire, error) {
	l, err := net.Listen(listenNetwork, listenAddress)
	if err != nil {
		return nil, err
	}
	w := &Wire{l: l, network: network, server: server, stream: stream, pairs: map[*pair]struct{}{}}
	w.Serve(l)
	return w, nil
}

// Serve also carries the connections of another listener, such as one of TLS. Close the listener
// before the wire.
func (w *Wire) Serve(l net.Listener) { w.wg.Go(func() { w.serve(l) }) }

// Upgrade is the stream function of a wire to a Docker engine: an exec's connection becomes a
// stream after one request.
func Upgrade(piece []byte) bool { return bytes.Contains(piece, []byte("\r\nUpgrade: tcp\r\n")) }

// Address returns the address at which the wire listens.
func (w *Wire) Address() string { return w.l.Addr().String() }

// Passed returns how many bytes the wire has carried, both ways.
func (w *Wire) Passed() int64 { return w.passed.Load() }

// Close cuts all connections, and returns when nothing is left of the wire.
func (w *Wire) Close() {
	w.l.Close()
	w.Unplug(true)
	w.wg.Wait()
}

// Cut cuts all current connections.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.pairs {
		p.close()
	}
	clear(w.pairs)
}

// Unplug cuts all connections, and each new one until it is called with false.
func (w *Wire) Unplug(dead bool) {
	w.mu.Lock()
	w.dead = dead
	w.mu.Unlock()
	if dead {
		w.Cut()
	}
}

// Redirect connects new connections to another server of the same network.
func (w *Wire) Redirect(server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = server
}

// Delay makes each later piece wait for d.
func (w *Wire) Delay(d time.Duration) { w.delay.Store(int64(d)) }

// Swallow drops what the current streams carry that way from then on. They stay open.
func (w *Wire) Swallow(way Way) {
	w.each(way, func(l *lane) { l.swallow.Store(true) })
}

// Hold stalls the current streams that way: the wire stops reading from them.
func (w *Wire) Hold(way Way) {
	w.each(way, func(l *lane) { l.once.Do(func() { close(l.held) }) })
}

// HalfClose ends that way of the current streams. The other end reads io.EOF, and later pieces are
// dropped.
func (w *Wire) HalfClose(way Way) {
	w.each(way, func(l *lane) {
		l.swallow.Store(true)
		closeWrite(l.to)
	})
}

// Corrupt changes a bit in the next piece that each of the current streams carries that way.
func (w *Wire) Corrupt(way Way) {
	w.each(way, func(l *lane) { l.corrupt.Store(true) })
}

func (w *Wire) each(way Way, do func(*lane)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.pairs {
		for i, one := range []Way{Up, Down} {
			if way&one != 0 && p.stream.Load() {
				do(p.lanes[i])
			}
		}
	}
}

// A pair is a connection through the wire.
type pair struct {
	lanes  [2]*lane // up and down
	stream atomic.Bool
	closed chan struct{}
	once   sync.Once
}

// A lane is one way of a pair.
type lane struct {
	from, to         net.Conn
	swallow, corrupt atomic.Bool
	held             chan struct{} // closed by Hold
	once             sync.Once
}

func (p *pair) close() {
	p.once.Do(func() {
		close(p.closed)
		p.lanes[0].from.Close()
		p.lanes[0].to.Close()
	})
}

// serve carries the connections of a listener until the listener is closed.
func (w *Wire) serve(l net.Listener) {
	for {
		a, err := l.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		server := w.server
		w.mu.Unlock()
		b, err := net.Dial(w.network, server)
		if err != nil {
			a.Close()
			continue
		}
		p := &pair{closed: make(chan struct{})}
		p.lanes = [2]*lane{{from: a, to: b, held: make(chan struct{})},
			{from: b, to: a, held: make(chan struct{})}}
		p.stream.Store(w.stream == nil)
		w.mu.Lock()
		if w.dead {
			w.mu.Unlock()
			p.close()
			continue
		}
		w.pairs[p] = struct{}{}
		w.mu.Unlock()
		var lanes sync.WaitGroup
		for i := range p.lanes {
			lanes.Go(func() { w.carry(p, i) })
		}
		w.wg.Go(func() {
			lanes.Wait()
			p.close()
			w.mu.Lock()
			delete(w.pairs, p)
			w.mu.Unlock()
		})
	}
}

// carry carries one way of a pair until its end.
func (w *Wire) carry(p *pair, i int) {
	l := p.lanes[i]
	defer closeWrite(l.to)
	buf := make([]byte, 32<<10)
	for {
		n, err := l.from.Read(buf)
		if n > 0 && !w.pass(p, l, i, buf[:n]) || err != nil {
			return
		}
	}
}

// pass passes one piece on, and reports whether the lane goes on.
func (w *Wire) pass(p *pair, l *lane, i int, piece []byte) bool {
	w.passed.Add(int64(len(piece)))
	if d := time.Duration(w.delay.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-p.closed:
			return false
		}
	}
	select {
	case <-l.held:
		<-p.closed
		return false
	default:
	}
	if l.swallow.Load() {
		return true
	}
	if l.corrupt.Swap(false) {
		piece[len(piece)/2] ^= 0x10
	}
	if i == 0 && w.stream != nil && !p.stream.Load() && w.stream(piece) {
		p.stream.Store(true)
	}
	_, err := l.to.Write(piece)
	return err == nil
}

// closeWrite ends the writing half of a connection.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}
