package sshdtest

import (
	"net"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/hosttest"
)

// A Proxy is a wire to a server. It can be cut, and it can go silent.
type Proxy struct {
	Address string // host and port on this machine

	mu     sync.Mutex
	conns  []net.Conn
	silent chan struct{}
}

// StartProxy starts a proxy that ends with the test.
func StartProxy(t testing.TB, to string) *Proxy {
	p := &Proxy{silent: make(chan struct{})}
	forward := func(dst, src net.Conn) {
		b := make([]byte, 32<<10)
		for {
			n, err := src.Read(b)
			if err != nil {
				dst.Close()
				return
			}
			select {
			case <-p.silent: // swallows
			default:
				dst.Write(b[:n])
			}
		}
	}
	p.Address = hosttest.Listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, up)
		p.mu.Unlock()
		go forward(up, c)
		forward(c, up)
	}).Addr().String()
	t.Cleanup(p.Cut)
	return p
}

// Cut closes all connections that there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

// Silence drops what comes from now on, either way. To be called once.
func (p *Proxy) Silence() { close(p.silent) }

// Through is the server as it is reached through a proxy, which ends with the test.
func (s *Server) Through(t testing.TB) (*Server, *Proxy) {
	p := StartProxy(t, s.Address)
	return &Server{Address: p.Address, User: s.User, Key: s.Key, KeyFile: s.KeyFile, HostKey: s.HostKey, Dir: s.Dir}, p
}
