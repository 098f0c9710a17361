//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestListen(t *testing.T) {
	t.Parallel()
	h, w := newHost(t)
	before := w.b.steady()
	hosttest.Listeners(t, h)
	w.b.settled(before)
}

// A listener stays when the connection is cut. Open connections end with an error at both ends. New
// ones wait.
func TestListenerSurvivesCut(t *testing.T) {
	t.Parallel()
	h, w := newHost(t)
	before := w.b.steady()
	for _, network := range []string{"tcp", "unix"} {
		address := "127.0.0.1:0"
		if network == "unix" {
			address = filepath.Join(t.TempDir(), "socket")
		}
		l := hosttest.ListenOn(t, h, network, address)
		at := l.Addr().String()
		for range 2 {
			inside, err := net.Dial(network, at)
			require.NoError(t, err)
			inside.SetDeadline(time.Now().Add(hosttest.ListenLimit))
			outside, err := l.Accept()
			require.NoError(t, err)
			_, err = io.WriteString(inside, "before")
			require.NoError(t, err)
			_, err = io.ReadFull(outside, make([]byte, 6))
			require.NoError(t, err)
			w.cut()
			_, err = outside.Read(make([]byte, 1))
			require.ErrorIs(t, err, sandbox.ErrCut)
			_, err = inside.Read(make([]byte, 1))
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			if network == "tcp" {
				require.ErrorIs(t, err, syscall.ECONNRESET)
			}
			outside.Close()
			inside.Close()
			ended := make(chan error, 1)
			go func() {
				ended <- hosttest.Echoed(network, at, bytes.Repeat([]byte("after"), 100_000))
			}()
			next, err := l.Accept()
			require.NoError(t, err)
			hosttest.Echo(next)
			require.NoError(t, <-ended)
			next.Close()
		}
		require.NoError(t, l.Close())
	}
	w.b.settled(before)
}

// The connection is cut while many programs connect. Each of their connections is served, or fails
// at both ends.
func TestListenCutConnecting(t *testing.T) {
	t.Parallel()
	h, w := newHost(t)
	before := w.b.steady()
	l := hosttest.ListenOn(t, h, "tcp", "127.0.0.1:0")
	ended := hosttest.Serve(l, hosttest.Echo)
	stop := make(chan struct{})
	var cutting, all sync.WaitGroup
	cutting.Go(func() {
		for range 4 {
			select {
			case <-time.After(20 * time.Millisecond):
				w.cut()
			case <-stop:
			}
		}
	})
	for i := range 50 {
		all.Go(func() {
			for { // a program inside that tries again succeeds
				err := hosttest.Echoed("tcp", l.Addr().String(),
					bytes.Repeat([]byte{byte(i)}, 1000*i))
				if err == nil {
					return
				}
				if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ECONNREFUSED) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	close(stop)
	cutting.Wait()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
	w.b.settled(before)
}

// A Close during a cut, and a Listen whose ctx ends, leave nothing that listens.
func TestListenClosedInCut(t *testing.T) {
	t.Parallel()
	h, w := newHost(t)
	for i := range 3 {
		socket := filepath.Join(t.TempDir(), fmt.Sprint("socket", i))
		l := hosttest.ListenOn(t, h, "unix", socket)
		w.cut()
		require.NoError(t, l.Close())
		waitFor(t, "the socket is gone", func() bool {
			_, err := os.Lstat(socket)
			return os.IsNotExist(err)
		})
	}
}

// If more programs connect than are announced at once, the others wait, and all are served.
func TestListenBacklog(t *testing.T) {
	t.Parallel()
	h, w := newHost(t)
	before := w.b.steady()
	l := hosttest.ListenOn(t, h, "tcp", "127.0.0.1:0")
	const many = 3 * wire.ListenBacklog
	var all sync.WaitGroup
	for range many {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		all.Go(func() {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(hosttest.ListenLimit))
			if got, err := io.ReadAll(conn); string(got) != "served" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	ended := hosttest.Serve(l, func(c net.Conn) { io.WriteString(c, "served") })
	all.Wait()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
	w.b.settled(before)
}

// The next owner can listen at the address. The previous owner learns why its listener has ended.
func TestListenTaken(t *testing.T) {
	t.Parallel()
	h, w := newHost(t)
	// Another program might take a TCP port meanwhile.
	l := hosttest.ListenOn(t, h, "unix", filepath.Join(t.TempDir(), "socket"))
	ended := hosttest.Serve(l, hosttest.Echo)
	next, err := client.Connect(t.Context(), client.Config{Name: "box", Place: w,
		Patience: time.Minute, Keep: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer next.Close()
	hosttest.ListenOn(t, next, "unix", l.Addr().String())
	var lost *sandbox.LostError
	require.ErrorAs(t, <-ended, &lost)
	require.Equal(t, sandbox.LostTaken, lost.Cause)
	require.NoError(t, l.Close())
}

// The host's Close ends its listeners.
func TestListenHostClosed(t *testing.T) {
	t.Parallel()
	h, _ := newHost(t)
	ended := hosttest.Serve(hosttest.ListenOn(t, h, "tcp", "127.0.0.1:0"), hosttest.Echo)
	require.NoError(t, h.Close())
	require.ErrorIs(t, <-ended, sandbox.ErrClosed)
	_, err := h.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.ErrorIs(t, err, sandbox.ErrClosed)
}
