package hosttest

import (
	"bytes"
	"context"
	"errors"
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

	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// ListenLimit bounds each step of a connection.
const ListenLimit = time.Minute

// Listeners tests what every shellbox.ListenHost must do. The host listens on this machine.
func Listeners(t *testing.T, h shellbox.ListenHost) {
	for name, at := range map[string]struct{ network, address string }{
		"tcp": {"tcp", "127.0.0.1:0"}, "tcp4": {"tcp4", "127.0.0.1:0"}, "tcp6": {"tcp6", "[::1]:0"},
		"unix": {"unix", filepath.Join(t.TempDir(), "socket")},
	} {
		t.Run(name, func(t *testing.T) { listens(t, h, at.network, at.address) })
	}
	t.Run("Refused", func(t *testing.T) { listenRefused(t, h) })
	t.Run("Waiting", func(t *testing.T) { listenWaiting(t, h) })
}

// ListenOn listens until the test ends.
func ListenOn(t testing.TB, h shellbox.ListenHost, network, address string) net.Listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ListenLimit)
	defer cancel()
	l, err := h.Listen(ctx, network, address)
	if err != nil && strings.Contains(address, "::1") {
		t.Skipf("no IPv6 here: %v", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// Serve serves connections until the listener ends. The channel that it returns gets Accept's last
// error.
func Serve(l net.Listener, serve func(net.Conn)) <-chan error {
	ended := make(chan error, 1)
	go func() {
		var serving sync.WaitGroup
		for {
			conn, err := l.Accept()
			if err != nil {
				serving.Wait()
				ended <- err
				return
			}
			serving.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(ListenLimit))
				serve(conn)
			})
		}
	}()
	return ended
}

// Echo sends back what it reads, and closes its half when the other end has closed its own.
func Echo(c net.Conn) {
	io.Copy(c, c)
	c.(interface{ CloseWrite() error }).CloseWrite()
}

// Echoed connects, sends, closes its half, and checks that all comes back.
func Echoed(network, address string, sent []byte) error {
	conn, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(ListenLimit))
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(sent)
		wrote <- errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite())
	}()
	got, err := io.ReadAll(conn)
	if err := errors.Join(err, <-wrote); err != nil {
		return err
	}
	if !bytes.Equal(got, sent) {
		return errors.New("not what was sent came back")
	}
	return nil
}

func listens(t *testing.T, h shellbox.ListenHost, network, address string) {
	l := ListenOn(t, h, network, address)
	at := l.Addr()
	if network == "unix" {
		require.Equal(t, address, at.String())
		info, err := os.Stat(address)
		require.NoError(t, err)
		require.Equal(t, fs.ModeSocket|0o600, info.Mode())
	} else {
		require.NotZero(t, at.(*net.TCPAddr).Port)
	}
	ended := Serve(l, func(c net.Conn) {
		require.NotNil(t, c.RemoteAddr())
		require.Equal(t, at.String(), c.LocalAddr().String())
		Echo(c)
	})
	var all sync.WaitGroup
	errs := make([]error, 100)
	for i := range errs {
		all.Go(func() {
			errs[i] = Echoed(at.Network(), at.String(), bytes.Repeat([]byte{byte(i)}, 1000*i))
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))

	again, err := h.Listen(t.Context(), network, at.String())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.Nil(t, again)

	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
	if network == "unix" {
		_, err := os.Lstat(address)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	again = ListenOn(t, h, network, at.String())
	ended = Serve(again, Echo)
	require.NoError(t, Echoed(at.Network(), at.String(), []byte("again")))
	require.NoError(t, again.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}

func listenRefused(t *testing.T, h shellbox.ListenHost) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	other := Listen(t, "tcp", "127.0.0.1:0", Echo).Addr().String()
	for _, c := range []struct {
		network, address string
		want             error
	}{
		{"tcp", other, syscall.EADDRINUSE},
		{"unix", file, syscall.EADDRINUSE},
		{"unix", dir + "/none/socket", fs.ErrNotExist},
		{"unix", file + "/socket", syscall.ENOTDIR},
		{"unix", dir + "/" + strings.Repeat("long", 30), syscall.EINVAL},
	} {
		l, err := h.Listen(t.Context(), c.network, c.address)
		var op *net.OpError
		require.ErrorIs(t, err, c.want, c.address)
		require.ErrorAs(t, err, &op)
		require.Equal(t, "listen", op.Op)
		require.Equal(t, c.address, op.Addr.String())
		require.Nil(t, l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := h.Listen(ctx, "tcp", "127.0.0.1:0")
	require.ErrorIs(t, err, context.Canceled)
}

// listenWaiting tests that connections wait to be accepted. Close rejects those that wait, and
// leaves those that have been accepted.
func listenWaiting(t *testing.T, h shellbox.ListenHost) {
	l := ListenOn(t, h, "tcp", "127.0.0.1:0")
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		conn.SetDeadline(time.Now().Add(ListenLimit))
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	first := dial()
	_, err := io.WriteString(first, "before it is accepted")
	require.NoError(t, err)
	accepted, err := l.Accept()
	require.NoError(t, err)
	defer accepted.Close()
	second := dial() // the first was accepted: of two that wait, either may be accepted first
	require.NoError(t, l.Close())
	rest, err := io.ReadAll(second)
	require.Empty(t, rest, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	served := make(chan struct{})
	go func() {
		defer close(served)
		Echo(accepted)
	}()
	require.NoError(t, first.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(first)
	require.NoError(t, err)
	require.Equal(t, "before it is accepted", string(got))
	<-served
}
