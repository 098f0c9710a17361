package sshhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
)

func echo(c net.Conn) { io.Copy(c, c) }

func TestDial(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	for _, c := range []struct{ network, listen, address string }{
		{"tcp", "127.0.0.1:0", "127.0.0.1"},
		{"tcp", "127.0.0.1:0", "localhost"},
		{"tcp4", "127.0.0.1:0", "localhost"},
		{"tcp4", "127.0.0.1:0", "127.0.0.1"},
		{"tcp6", "[::1]:0", "::1"},
		{"tcp6", "[::1]:0", "localhost"},
		{"unix", "", ""},
	} {
		t.Run(c.network+" "+c.address, func(t *testing.T) {
			address := filepath.Join(t.TempDir(), "socket")
			if c.network == "unix" {
				hosttest.Listen(t, "unix", address, echo)
			} else {
				_, port, _ := net.SplitHostPort(hosttest.Listen(t, c.network, c.listen,
					echo).Addr().String())
				address = net.JoinHostPort(c.address, port)
			}
			conn, err := h.Dial(t.Context(), c.network, address)
			noError(t, err)
			defer conn.Close()
			if got := conn.RemoteAddr(); got.Network() != c.network || c.address != "localhost" &&
				got.String() != address {
				t.Errorf("remote address is %s %s", got.Network(), got)
			}
			if conn.LocalAddr() == nil || conn.LocalAddr().String() == "" && c.network != "unix" {
				t.Errorf("local address is %v", conn.LocalAddr())
			}
			sent := make([]byte, 3<<20)
			(&pattern{}).Read(sent)
			go func() {
				conn.Write(sent)
				conn.(interface{ CloseWrite() error }).CloseWrite() // the answer still comes
			}()
			got, err := io.ReadAll(conn)
			noError(t, err)
			if !bytes.Equal(got, sent) {
				t.Errorf("got %d bytes, not the %d sent", len(got), len(sent))
			}
		})
	}
}

func TestDialRefused(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	unused := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	ul, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	noError(t, err)
	ul.SetUnlinkOnClose(false)
	ul.Close()
	for _, c := range []struct {
		network, address string
		want             error
	}{
		{"tcp", unused, syscall.ECONNREFUSED},
		{"tcp", strings.Replace(unused, "127.0.0.1", "localhost", 1), syscall.ECONNREFUSED},
		{"unix", filepath.Join(dir, "none"), fs.ErrNotExist},
		{"unix", dead, syscall.ECONNREFUSED},
		{"unix", dir, nil},
		{"tcp", "no-such-host.invalid:80", nil},
		{"tcp", "127.0.0.1", nil},
		{"tcp", "127.0.0.1:http", nil},
		{"tcp", "127.0.0.1:70000", nil},
		{"tcp4", "[::1]:80", nil},
		{"tcp6", "127.0.0.1:80", nil},
		{"udp", "127.0.0.1:80", net.UnknownNetworkError("udp")},
		{"unix", "relative", nil},
	} {
		conn, err := h.Dial(t.Context(), c.network, c.address)
		var op *net.OpError
		if conn != nil || !errors.As(err, &op) || c.want != nil && !errors.Is(err, c.want) ||
			op.Addr == nil && !strings.Contains(err.Error(), c.address) && c.network != "udp" {
			t.Errorf("%s %s: got %v, want %v", c.network, c.address, err, c.want)
		}
	}
}

// TestDialForbidden checks the error of a server whose settings forbid forwarding.
func TestDialForbidden(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t, "AllowTcpForwarding no", "AllowStreamLocalForwarding no"),
		Config{})
	socket := filepath.Join(t.TempDir(), "socket")
	hosttest.Listen(t, "unix", socket, echo)
	for network, address := range map[string]string{"tcp": "127.0.0.1:1", "unix": socket} {
		if _, err := h.Dial(t.Context(), network, address); err == nil ||
			!strings.Contains(err.Error(), "does not forward") {
			t.Errorf("%s: got %v", network, err)
		}
	}
}

func TestDialCancelled(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Dial(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestDialDeadlines(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	block := make(chan struct{})
	l := hosttest.Listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { <-block; echo(c) })
	conn, err := h.Dial(t.Context(), "tcp", l.Addr().String())
	noError(t, err)
	defer conn.Close()
	b := make([]byte, 10)

	conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := conn.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if _, err := conn.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read again: %v", err)
	}
	var timeout net.Error
	if _, err := conn.Read(b); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("not a timeout: %v", err)
	}
	conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := io.Copy(conn, &pattern{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
	close(block)
	conn.SetDeadline(time.Time{})
	if _, err := io.ReadFull(conn, b); err != nil {
		t.Errorf("after the deadlines: %v", err)
	}
	// A deadline that is set while a read is under way ends the read.
	conn2, err := h.Dial(t.Context(), "tcp", hosttest.Listen(t, "tcp", "127.0.0.1:0",
		echo).Addr().String())
	noError(t, err)
	defer conn2.Close()
	done := make(chan error)
	conn2.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	go func() { _, err := conn2.Read(b); done <- err }()
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestDialMany(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	address := hosttest.Listen(t, "tcp", "127.0.0.1:0", echo).Addr().String()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			conn, err := h.Dial(t.Context(), "tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, i)
			conn.(interface{ CloseWrite() error }).CloseWrite()
			if b, err := io.ReadAll(conn); string(b) != fmt.Sprint(i) {
				t.Errorf("%d: got %q, %v", i, b, err)
			}
		})
	}
	wg.Wait()
}

func TestDialClose(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{})
	conn, err := h.Dial(t.Context(), "tcp", hosttest.Listen(t, "tcp", "127.0.0.1:0",
		echo).Addr().String())
	noError(t, err)
	done := make(chan error)
	go func() { _, err := conn.Read(make([]byte, 1)); done <- err }()
	noError(t, conn.Close())
	noError(t, conn.Close())
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write: %v", err)
	}
}
