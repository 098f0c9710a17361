// Package linktest provides a Link, a relay that puts a server at a distance, and counts the round
// trips that its client has waited for.
package linktest

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/hosttest"
)

// A Config describes a Link.
type Config struct {
	// Network and Listen are where the Link listens, as net.Listen takes them. The default is a
	// port of loopback.
	Network, Listen string
	// Server is the server's address, in the same Network.
	Server string
	// RoundTrip is the time that a byte takes to the server and back. Each way takes half of it.
	// It takes one round trip to connect, as with TCP.
	RoundTrip time.Duration
	// Rate is how many bytes per second the Link carries each way. 0: no limit.
	Rate int
}

// A Link carries connections to a distant server. Its methods may be called concurrently.
type Link struct {
	Address string // where it listens

	config Config

	mu sync.Mutex
	// The clocks of both ends count flights. Each piece of data takes the clock of its sender plus
	// one, and the clock of its receiver becomes at least that (Lamport's clocks). So the clock of
	// an end is the length of the longest chain of pieces of which each has waited for the one
	// before.
	clocks [2]int
	free   [2]time.Time // when the link has carried all so far, each way
}

// The two ends of a Link.
const (
	client = 0
	server = 1
)

// Start starts a Link. It ends with the test.
func Start(t testing.TB, c Config) *Link {
	if c.Network == "" {
		c.Network, c.Listen = "tcp", "127.0.0.1:0"
	}
	l := &Link{config: c}
	var mu sync.Mutex
	ended := false
	conns := map[net.Conn]struct{}{}
	keep := func(c net.Conn) bool {
		mu.Lock()
		defer mu.Unlock()
		conns[c] = struct{}{}
		return !ended
	}
	l.Address = hosttest.Listen(t, c.Network, c.Listen, func(c net.Conn) {
		if keep(c) {
			l.serve(c, keep)
		}
		mu.Lock()
		delete(conns, c)
		mu.Unlock()
	}).Addr().String()
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		for c := range conns {
			c.Close()
		}
	})
	return l
}

// RoundTrips returns how many round trips the client has waited for so far, one after the other.
// What travels at the same time counts once. Time is not measured.
func (l *Link) RoundTrips() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clocks[client] / 2
}

// serve carries one connection to its end.
func (l *Link) serve(c net.Conn, keep func(net.Conn) bool) {
	l.mu.Lock()
	connected := l.clocks[client] + 2 // SYN and SYN-ACK
	l.mu.Unlock()
	time.Sleep(3 * l.config.RoundTrip / 2) // and the first ACK
	l.arrive(server, connected+1)
	up, err := net.Dial(l.config.Network, l.config.Server)
	if err != nil {
		return
	}
	defer up.Close()
	if !keep(up) {
		return
	}
	var lanes sync.WaitGroup
	lanes.Go(func() { l.carry(server, up, c, connected+1) })
	lanes.Go(func() { l.carry(client, c, up, 0) })
	lanes.Wait()
}

// A piece is data on its way.
type piece struct {
	data  []byte
	due   time.Time
	clock int
}

// carry carries one way of a connection to its end. No piece's clock is less than least.
func (l *Link) carry(to int, dst, src net.Conn, least int) {
	pieces := make(chan piece, 1<<12)
	go func() {
		defer close(pieces)
		size := 32 << 10
		if l.config.Rate > 0 {
			size = 1400 // as in a packet
		}
		for {
			buf := make([]byte, size)
			n, err := src.Read(buf)
			if n > 0 {
				p := l.depart(to, buf[:n], least)
				pieces <- p
				// A sender notices when the link is full.
				time.Sleep(time.Until(p.due) - l.config.RoundTrip)
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		l.arrive(to, p.clock)
		if _, err := dst.Write(p.data); err != nil {
			src.Close()
			break
		}
	}
	if half, ok := dst.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	for range pieces { // the reader must not block
	}
}

// depart returns data as a piece that leaves now.
func (l *Link) depart(to int, data []byte, least int) piece {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.free[to].Before(now) {
		l.free[to] = now
	}
	if l.config.Rate > 0 {
		l.free[to] = l.free[to].Add(time.Duration(len(data)) * time.Second /
			time.Duration(l.config.Rate))
	}
	return piece{data, l.free[to].Add(l.config.RoundTrip / 2), max(l.clocks[1-to]+1, least)}
}

// arrive sets the clock of an end that gets a piece.
func (l *Link) arrive(at, clock int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clocks[at] = max(l.clocks[at], clock)
}
