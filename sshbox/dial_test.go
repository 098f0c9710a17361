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

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// dialError dials with c, and expects a DialError that contains the address, the user and all of
// want.
func dialError(t *testing.T, c DialConfig, want ...string) *DialError {
	t.Helper()
	c, err := c.withDefaults()
	noError(t, err)
	h, err := c.logIn(t.Context())
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

// TestDialUnreachable dials servers that refuse, do not answer or hang up.
func TestDialUnreachable(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	t.Run("refused", func(t *testing.T) {
		c := s.config()
		c.Address = freeAddress(t)
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
	t.Run("silent", func(t *testing.T) { // a server that accepts, and sends nothing
		c := s.config()
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			io.Copy(io.Discard, c)
		}).Addr().String()
		c.HandshakeTimeout = 100 * time.Millisecond
		dialError(t, c, "within 100ms")

		ctx, cancel := context.WithCancel(t.Context())
		c.HandshakeTimeout = time.Minute
		time.AfterFunc(50*time.Millisecond, cancel)
		begin := time.Now()
		c, err := c.withDefaults()
		noError(t, err)
		if _, err := c.logIn(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("it returned %v after the call", d)
		}
	})
	t.Run("another service", func(t *testing.T) {
		c := s.config()
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}).Addr().String()
		dialError(t, c)
	})
	t.Run("hangs up", func(t *testing.T) {
		c := s.config()
		var tries sync.Map
		c.Address = listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			tries.Store(c.RemoteAddr().String(), true)
		}).Addr().String()
		c.HandshakeTimeout = time.Second
		dialError(t, c, "closed the connection before it said anything")
		n := 0
		tries.Range(func(any, any) bool { n++; return true })
		if n < 2 {
			t.Errorf("tried %d times: a server that hangs up may have too many connections just "+
				"then, so Dial must try again", n)
		}
	})
}

// TestKeepAliveDefault shows that a silent machine is lost within 10 s by default. When a machine
// falls silent, its last sign of life may be almost KeepAlive old.
func TestKeepAliveDefault(t *testing.T) {
	c, err := DialConfig{Address: "machine"}.withDefaults()
	noError(t, err)
	if limit := c.KeepAlive * time.Duration(c.KeepAliveMax+1); limit > 9*time.Second {
		t.Errorf("a silent machine is lost after %v", limit)
	}
}

// TestKeepAlive shows that KeepAlive and KeepAliveMax reach the connection. (The tests of sshhost
// show what happens to a Host whose server is gone.)
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	proxied, wire := startSSHD(t).Through(t)
	h := (&sshd{proxied}).host(t, func(c *DialConfig) {
		c.KeepAlive, c.KeepAliveMax = 50*time.Millisecond, 2
	})
	wire.Silence()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	if err := h.Lost(ctx); !errors.Is(err, sandbox.ErrLost) ||
		!strings.Contains(err.Error(), "does not answer: no answer for 100ms") {
		t.Errorf("got %v", err)
	}
}

// TestAddress shows which addresses are accepted, and that the default port is 22.
func TestAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"machine": "machine:22", "machine:": "machine:22", "machine:2222": "machine:2222",
		"::1": "[::1]:22", "[::1]": "[::1]:22", "[::1]:": "[::1]:22", "[::1]:2222": "[::1]:2222",
	} {
		c, err := DialConfig{Address: address}.withDefaults()
		if err != nil || c.Address != want {
			t.Errorf("%q is %q, %v", address, c.Address, err)
		}
	}
	for address, want := range map[string]string{
		"root@machine": "User", "root@machine:22": "User", "ssh://machine": "URL",
		"machine:ssh": "port", "machine:0": "port", "machine:70000": "port", ":22": "no host",
	} {
		_, err := DialConfig{Address: address}.withDefaults()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := (DialConfig{Address: "machine", Env: []string{"A"}}).withDefaults(); err == nil {
		t.Error("an Env entry without a value was accepted")
	}
}
