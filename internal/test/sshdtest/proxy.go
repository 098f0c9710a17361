package sshdtest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sandshell/sandshell/internal/test/hosttest"
)

// A Proxy carries connections to a server. It can cut them, go silent, and corrupt what it carries.
type Proxy struct {
	Address string // host and port on this machine

	mu     sync.Mutex
	down   bool
	conns  []net.Conn
	silent chan struct{}

	corrupt atomic.Bool
}

// StartProxy starts a proxy that ends with the test.
func StartProxy(t testing.TB, to string) *Proxy {
	p := &Proxy{silent: make(chan struct{})}
	forward := func(dst, src net.Conn, corrupt *atomic.Bool) {
		b := make([]byte, 32<<10)
		for {
			n, err := src.Read(b)
			if err != nil {
				dst.Close()
				return
			}
			if corrupt.Swap(false) {
				b[n-1] ^= 1
			}
			select {
			case <-p.silent: // drop the piece
			default:
				dst.Write(b[:n])
			}
		}
	}
	p.Address = hosttest.Listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		p.mu.Lock()
		down := p.down
		p.mu.Unlock()
		if down {
			return
		}
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.down {
			up.Close()
		}
		p.conns = append(p.conns, c, up)
		p.mu.Unlock()
		go forward(up, c, new(atomic.Bool))
		forward(c, up, &p.corrupt)
	}).Addr().String()
	t.Cleanup(p.Cut)
	return p
}

// Cut closes all current connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

// Down closes all current connections, and each new one, until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	p.Cut()
}

// Up ends Down.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

// Silence drops all later data in both directions. It may be called only once.
func (p *Proxy) Silence() { close(p.silent) }

// Corrupt changes a bit of the next piece that the server sends.
func (p *Proxy) Corrupt() { p.corrupt.Store(true) }

// Through returns a Server that is reached through a proxy. The proxy ends with the test.
func (s *Server) Through(t testing.TB) (*Server, *Proxy) {
	p := StartProxy(t, s.Address)
	return &Server{Address: p.Address, User: s.User, Key: s.Key, KeyFile: s.KeyFile,
		HostKey: s.HostKey, Dir: s.Dir}, p
}
