package sshbox

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/sshhost"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// dialError logs in with c and expects a refusal that names the address, the user and all of want.
func dialError(t *testing.T, c DialConfig, want ...string) *DialError {
	t.Helper()
	c, err := c.withDefaults()
	noError(t, err)
	h, err := c.host(t.Context())
	if err == nil {
		h.Close()
		t.Fatal("logged in")
	}
	var e *DialError
	if !errors.As(err, &e) {
		t.Fatalf("not a *DialError: %v", err)
	}
	for _, w := range append(want, c.Address, c.User) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in %q", w, err)
		}
	}
	return e
}

func TestDialUnreachable(t *testing.T) {
	s := startSSHD(t)
	t.Run("refused", func(t *testing.T) {
		c := s.config()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		noError(t, err)
		c.Address = l.Addr().String()
		l.Close()
		if e := dialError(t, c, "connection refused"); !errors.Is(e, syscall.ECONNREFUSED) {
			t.Errorf("not ECONNREFUSED: %v", e)
		}
	})
	t.Run("no such host", func(t *testing.T) {
		c := s.config()
		c.Address = "no-such-host.invalid"
		var lookup *net.DNSError
		if e := dialError(t, c, "no-such-host.invalid:22", "no such host"); !errors.As(e, &lookup) {
			t.Errorf("not a DNSError: %v", e)
		}
	})
	t.Run("silent", func(t *testing.T) { // accepts, and never says a word
		c := s.config()
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(io.Discard, c) }).Addr().String()
		c.HandshakeTimeout = 100 * time.Millisecond
		dialError(t, c, "within 100ms")

		ctx, cancel := context.WithCancel(t.Context())
		c.HandshakeTimeout = time.Minute
		time.AfterFunc(50*time.Millisecond, cancel)
		begin := time.Now()
		c, err := c.withDefaults()
		noError(t, err)
		if _, err := c.host(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	})
	t.Run("another service", func(t *testing.T) {
		c := s.config()
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }).Addr().String()
		dialError(t, c)
	})
	t.Run("hangs up", func(t *testing.T) {
		c := s.config()
		var tries sync.Map
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { tries.Store(c.RemoteAddr().String(), true) }).Addr().String()
		c.HandshakeTimeout = time.Second
		dialError(t, c, "closed the connection before it said anything")
		n := 0
		tries.Range(func(any, any) bool { n++; return true })
		if n < 2 {
			t.Errorf("tried %d times: a server that has too many newcomers deserves another try", n)
		}
	})
}

// proxy is a wire to a server that can be cut, and that can go silent.
type proxy struct {
	address string
	mu      sync.Mutex
	conns   []net.Conn
	silent  chan struct{}
}

func startProxy(t *testing.T, to string) *proxy {
	p := &proxy{silent: make(chan struct{})}
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
	p.address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
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
	t.Cleanup(p.cut)
	return p
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

func TestLost(t *testing.T) {
	s := startSSHD(t)
	lost := func(t *testing.T, h *sshhost.Host, p shellbox.Process, want string) {
		t.Helper()
		done := make(chan error)
		go func() { _, err := p.Wait(); done <- err }()
		select {
		case err := <-done:
			if err == nil {
				t.Error("a status came over a lost connection")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("Wait hangs")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := h.Lost(ctx)
		var e *sandbox.LostError
		if !errors.As(err, &e) || !errors.Is(err, sandbox.ErrLost) || e.Box != "SSHBox" || !strings.Contains(err.Error(), want) {
			t.Errorf("Lost: %v", err)
		}
		if _, err := h.Start(ctx, sh("true")); !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("Start: %v", err)
		}
		if _, err := h.Dial(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("Dial: %v", err)
		}
		p.Close()
	}
	sleep := func(t *testing.T, h *sshhost.Host) shellbox.Process {
		t.Helper()
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sleep", "30"}, Terminal: &shellbox.Terminal{Rows: 24, Cols: 80}})
		noError(t, err)
		return p
	}
	t.Run("alive", func(t *testing.T) {
		h := s.host(t, nil)
		if err := h.Lost(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("cut", func(t *testing.T) {
		wire := startProxy(t, s.Address)
		h := s.host(t, func(c *DialConfig) { c.Address = wire.address })
		p := sleep(t, h)
		l := listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(io.Discard, c) })
		conn, err := h.Dial(t.Context(), "tcp", l.Addr().String())
		noError(t, err)
		defer conn.Close()
		time.AfterFunc(5*time.Millisecond, wire.cut)
		for err == nil {
			_, err = conn.Write([]byte("x"))
		}
		if !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("write: %v", err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, sandbox.ErrLost) { // io.EOF would say that all has come
			t.Errorf("read: %v", err)
		}
		lost(t, h, p, "by the server") // closed or, with what it has not read, reset
	})
	t.Run("silent", func(t *testing.T) {
		wire := startProxy(t, s.Address)
		h := s.host(t, func(c *DialConfig) { c.Address, c.KeepAlive, c.KeepAliveMax = wire.address, 50*time.Millisecond, 2 })
		p := sleep(t, h)
		close(wire.silent)
		lost(t, h, p, "does not answer: no answer for 100ms")
	})
	t.Run("alive under load", func(t *testing.T) {
		h := s.host(t, func(c *DialConfig) { c.KeepAlive, c.KeepAliveMax = 100*time.Millisecond, 10 })
		if r := run(t, h, sh("head -c 100000000 /dev/zero")); len(r.Stdout) != 100000000 {
			t.Errorf("got %d bytes", len(r.Stdout))
		}
	})
	t.Run("close of a silent one", func(t *testing.T) {
		wire := startProxy(t, s.Address)
		h := s.host(t, func(c *DialConfig) { c.Address = wire.address })
		p := sleep(t, h)
		close(wire.silent)
		begin := time.Now()
		p.Close()
		h.Close()
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("took %v", d)
		}
	})
	t.Run("the server's process killed", func(t *testing.T) {
		h := s.host(t, nil)
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sh", "-c", "echo $PPID; sleep 30"}})
		noError(t, err)
		b := make([]byte, 20)
		n, err := p.Stdout().Read(b)
		noError(t, err)
		execute(t, "kill", "-KILL", strings.TrimSpace(string(b[:n])))
		lost(t, h, p, "closed by the server")
	})
}
