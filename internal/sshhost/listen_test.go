package sshhost

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

func TestListen(t *testing.T) {
	t.Parallel()
	hosttest.Listeners(t, hostOf(t, sshdtest.Start(t), Config{}))
}

func TestListenHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	h := hostOf(t, sshdtest.Start(t), Config{Env: []string{"HOME=" + home}})
	l := hosttest.ListenOn(t, h, "unix", "~/socket")
	require.Equal(t, filepath.Join(home, "socket"), l.Addr().String())
}

func TestListenForbidden(t *testing.T) {
	t.Parallel()
	h := hostOf(t, sshdtest.Start(t, "AllowTcpForwarding no", "AllowStreamLocalForwarding no"),
		Config{})
	for network, address := range map[string]string{"tcp": "127.0.0.1:0",
		"unix": filepath.Join(t.TempDir(), "socket")} {
		_, err := h.Listen(t.Context(), network, address)
		require.ErrorContains(t, err, "AllowTcpForwarding", network)
	}
}

// TestListenAddress checks that Addr returns where the server really listens. If the server cannot
// listen on the requested address, Listen returns an error.
func TestListenAddress(t *testing.T) {
	t.Parallel()
	loopback := hostOf(t, sshdtest.Start(t), Config{})
	everywhere := hostOf(t, sshdtest.Start(t, "GatewayPorts yes"), Config{})
	asAsked := hostOf(t, sshdtest.Start(t, "GatewayPorts clientspecified"), Config{})
	for _, c := range []struct {
		h          *Host
		asked      string
		addr, fail string // the beginning of Addr, or a part of the error
	}{
		{loopback, "127.0.0.1:0", "127.0.0.1:", ""},
		{loopback, "localhost:0", "127.0.0.1:", ""},
		{loopback, ":0", "127.0.0.1:", ""},
		{loopback, "0.0.0.0:0", "127.0.0.1:", ""},
		{loopback, "127.0.0.2:0", "", "GatewayPorts no"},
		{loopback, "192.0.2.1:0", "", "GatewayPorts no"},
		{everywhere, ":0", ":", ""},
		{everywhere, "127.0.0.1:0", "", "GatewayPorts yes"},
		{everywhere, "localhost:0", "", "GatewayPorts yes"},
		{asAsked, "127.0.0.2:0", "127.0.0.2:", ""},
	} {
		l, err := c.h.Listen(t.Context(), "tcp", c.asked)
		if c.fail != "" {
			require.ErrorIs(t, err, syscall.EADDRNOTAVAIL, c.asked)
			require.ErrorContains(t, err, c.fail, c.asked)
			continue
		}
		require.NoError(t, err, c.asked)
		require.True(t, strings.HasPrefix(l.Addr().String(), c.addr), "%s: %s", c.asked, l.Addr())
		_, port, _ := net.SplitHostPort(l.Addr().String())
		require.NotEqual(t, "0", port)
		require.NoError(t, l.Close())
	}
}

// TestListenLost checks that the listener ends with the connection. Accept and accepted connections
// then return errors that say that the host is lost.
func TestListenLost(t *testing.T) {
	t.Parallel()
	there, wire := sshdtest.Start(t).Through(t)
	h := hostOf(t, there, Config{})
	l := hosttest.ListenOn(t, h, "tcp", "127.0.0.1:0")
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	accepted, err := l.Accept()
	require.NoError(t, err)
	ended := hosttest.Serve(l, hosttest.Echo)
	wire.Cut()
	var lost *sandbox.LostError
	require.ErrorAs(t, <-ended, &lost)
	_, err = accepted.Read(make([]byte, 1))
	require.ErrorIs(t, err, sandbox.ErrLost)
	_, err = io.ReadAll(conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = h.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.ErrorIs(t, err, sandbox.ErrLost)
	require.NoError(t, l.Close())
}

// TestListenGivenUp checks that a Listen whose ctx has ended leaves no listener behind.
func TestListenGivenUp(t *testing.T) {
	t.Parallel()
	h := hostOf(t, sshdtest.Start(t), Config{})
	socket := filepath.Join(t.TempDir(), "socket")
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		listened := make(chan error)
		go func() {
			l, err := h.Listen(ctx, "unix", socket)
			if err == nil {
				err = l.Close()
			}
			listened <- err
		}()
		cancel()
		if err := <-listened; err != nil && !errors.Is(err, context.Canceled) {
			require.ErrorIs(t, err, syscall.EADDRINUSE) // by the previous round's socket
		}
	}
	waitFor(t, "the socket to be gone", func() bool {
		_, err := os.Lstat(socket)
		return os.IsNotExist(err)
	})
}
