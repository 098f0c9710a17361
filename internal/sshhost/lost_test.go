package sshhost

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// TestCut checks that a call fails with sandbox.ErrLost if the connection is cut or its data is
// changed on the way, at any moment.
func TestCut(t *testing.T) {
	s := sshdtest.Start(t, "LogLevel QUIET")
	nothing := hosttest.Listen(t, "tcp", "127.0.0.1:0", func(net.Conn) {}).Addr().String()
	closeIfOpen := func(c io.Closer, err error) error {
		if err == nil {
			c.Close()
		}
		return err
	}
	calls := map[string]func(*Host) error{
		"Start": func(h *Host) error {
			p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sh", "-i"},
				Terminal: &shellbox.Terminal{Rows: 24, Cols: 80, Commands: true}})
			return closeIfOpen(p, err)
		},
		"Dial": func(h *Host) error {
			c, err := h.Dial(t.Context(), "tcp", nothing)
			return closeIfOpen(c, err)
		},
		"Listen": func(h *Host) error {
			l, err := h.Listen(t.Context(), "tcp", "127.0.0.1:0")
			return closeIfOpen(l, err)
		},
		"OpenFiles": func(h *Host) error {
			f, err := h.OpenFiles(t.Context(), "")
			return closeIfOpen(f, err)
		},
	}
	faults := map[string]func(*sshdtest.Proxy){"cut": (*sshdtest.Proxy).Cut,
		"changed": (*sshdtest.Proxy).Corrupt}
	for name, call := range calls {
		for fault, strike := range faults {
			t.Run(name+" "+fault, func(t *testing.T) {
				t.Parallel()
				for range 4 {
					there, wire := s.Through(t)
					h := hostOf(t, there, Config{})
					time.AfterFunc(rand.N(25*time.Millisecond), func() { strike(wire) })
					var err error
					for err == nil {
						err = call(h)
					}
					if !errors.Is(err, sandbox.ErrLost) {
						t.Errorf("%v", err)
					}
					h.Close()
				}
			})
		}
	}
}

// TestSecondConnectionBreaks checks that the next program starts on another connection after a
// connection other than the first has broken.
func TestSecondConnectionBreaks(t *testing.T) {
	h := hostOf(t, sshdtest.Start(t), Config{MaxSessions: 1})
	p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"cat"}})
	noError(t, err)
	for range 10 {
		run(t, h, sh("true")) // on the second connection
		h.mu.Lock()
		second := h.connections[len(h.connections)-1]
		h.mu.Unlock()
		if second == h.first() {
			t.Fatal("there is one connection")
		}
		second.Client.Close()
		if r := run(t, h, sh("echo here")); r.Stdout != "here\n" {
			t.Fatalf("got %+v", r)
		}
	}
	noError(t, p.Stdin().Close())
	if r := finish(p); r.Status.Code != 0 {
		t.Errorf("the program on the first connection ended with %+v", r)
	}
}

func TestLost(t *testing.T) {
	s := sshdtest.Start(t)
	lost := func(t *testing.T, h *Host, p shellbox.Process, want string) {
		t.Helper()
		done := make(chan error)
		go func() { _, err := p.Wait(); done <- err }()
		select {
		case err := <-done:
			if err == nil {
				t.Error("a status came over a lost connection")
			}
		case <-time.After(testenv.Limit):
			t.Fatal("Wait hangs")
		}
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
		defer cancel()
		err := h.Lost(ctx)
		var e *sandbox.LostError
		if !errors.As(err, &e) || !errors.Is(err, sandbox.ErrLost) || e.Box != "SSHBox" ||
			!strings.Contains(err.Error(), want) {
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
	sleep := func(t *testing.T, h *Host) shellbox.Process {
		t.Helper()
		p, err := h.Start(t.Context(), shellbox.Program{Args: []string{"sleep", "30"},
			Terminal: &shellbox.Terminal{Rows: 24, Cols: 80}})
		noError(t, err)
		return p
	}
	t.Run("alive", func(t *testing.T) {
		h := hostOf(t, s, Config{})
		if err := h.Lost(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("cut", func(t *testing.T) {
		there, wire := s.Through(t)
		h := hostOf(t, there, Config{})
		p := sleep(t, h)
		l := hosttest.Listen(t, "tcp", "127.0.0.1:0", func(c net.Conn) { io.Copy(io.Discard, c) })
		conn, err := h.Dial(t.Context(), "tcp", l.Addr().String())
		noError(t, err)
		defer conn.Close()
		time.AfterFunc(5*time.Millisecond, wire.Cut)
		for err == nil {
			_, err = conn.Write([]byte("x"))
		}
		if !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("write: %v", err)
		}
		// io.EOF would say that all data has arrived.
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, sandbox.ErrLost) {
			t.Errorf("read: %v", err)
		}
		for err = nil; err == nil; {
			_, err = p.Stdout().Read(make([]byte, 1))
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the program's output: %v", err)
		}
		// closed by the server or, if it has not read all data, reset by the server
		lost(t, h, p, "by the server")
	})
	t.Run("silent", func(t *testing.T) {
		there, wire := s.Through(t)
		h := hostOf(t, there, Config{})
		p := sleep(t, h)
		wire.Silence()
		// Keep begins only here, because on a busy machine a start may take longer than 100 ms.
		h.first().Run(func() { h.first().Keep(50*time.Millisecond, 2) })
		lost(t, h, p, "does not answer: no answer for 100ms")
	})
	t.Run("close of a silent one", func(t *testing.T) {
		there, wire := s.Through(t)
		h := hostOf(t, there, Config{})
		p := sleep(t, h)
		wire.Silence()
		begin := time.Now()
		p.Close()
		h.Close()
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("took %v", d)
		}
	})
	t.Run("the server's process killed", func(t *testing.T) {
		h := hostOf(t, s, Config{})
		p, err := h.Start(t.Context(), shellbox.Program{
			Args: []string{"sh", "-c", "echo $PPID; sleep 30"}})
		noError(t, err)
		b := make([]byte, 20)
		n, err := p.Stdout().Read(b)
		noError(t, err)
		hosttest.Execute(t, "kill", "-KILL", strings.TrimSpace(string(b[:n])))
		lost(t, h, p, "closed by the server")
	})
}
