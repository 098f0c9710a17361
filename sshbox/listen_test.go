package sshbox

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// listenIn listens in a box on a port of its choice, until the test ends.
func listenIn(t *testing.T, box sandbox.Sandbox) net.Listener {
	t.Helper()
	l, err := box.Listen(limit(t), "tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// connects is a command that connects to a port, sends a line, and prints what comes to the end, or
// the error.
func connects(l net.Listener, line string) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return `python3 -c '
import socket
c = socket.create_connection(("127.0.0.1", ` + port + `))
c.sendall(b"` + line + `\n")
print("asked", flush=True)
try: print("answered", c.makefile().read())
except OSError as e: print(e.strerror)'`
}

// answered accepts a connection, and answers its line.
func answered(t *testing.T, l net.Listener) string {
	t.Helper()
	conn, err := l.Accept()
	noError(t, err)
	defer conn.Close()
	line := firstLine(t, conn)
	_, err = io.WriteString(conn, "yes")
	noError(t, err)
	return line
}

func firstLine(t *testing.T, conn net.Conn) string {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	var line []byte
	for b := make([]byte, 1); b[0] != '\n'; line = append(line, b[0]) {
		_, err := conn.Read(b)
		noError(t, err)
	}
	return string(line)
}

// While the way to the engine is down, programs connect, and are served when it is up again. What
// was open is cut, at both ends.
func TestCutListen(t *testing.T) {
	t.Parallel()
	c := newCable(t)
	box := c.box(t, nil)
	ctx := limit(t)
	l := listenIn(t, box)
	for range 3 {
		j, err := box.Background(ctx, connects(l, "before"))
		noError(t, err)
		conn, err := l.Accept()
		noError(t, err)
		require.Equal(t, "before\n", firstLine(t, conn))
		c.Cut()
		_, err = io.ReadAll(conn)
		require.ErrorIs(t, err, sandbox.ErrCut)
		_, err = conn.Write([]byte("x"))
		require.ErrorIs(t, err, sandbox.ErrCut)
		noError(t, conn.Close())
		r, err := j.Wait(ctx)
		exited(t, r, err, "asked\nConnection reset by peer\n")

		j, err = box.Background(ctx, connects(l, "after"))
		noError(t, err)
		require.Equal(t, "after\n", answered(t, l))
		r, err = j.Wait(ctx)
		exited(t, r, err, "asked\nanswered yes\n")
	}
	j, err := box.Background(ctx, "sleep 1; "+connects(l, "in the outage"))
	noError(t, err)
	c.Unplug(true)
	asked := make(chan string)
	go func() { asked <- answered(t, l) }()
	time.AfterFunc(2*time.Second, func() { c.Unplug(false) })
	require.Equal(t, "in the outage\n", <-asked)
	r, err := j.Wait(ctx)
	exited(t, r, err, "asked\nanswered yes\n")
}

func TestListenLost(t *testing.T) {
	t.Parallel()
	box := newBox(t, Config{Image: testImage, Network: "none"})
	l := listenIn(t, box)
	_, err := box.Background(limit(t), connects(l, "first"))
	noError(t, err)
	conn, err := l.Accept()
	noError(t, err)
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(); accepted <- err }()
	_, err = testEngine(t).ContainerRemove(t.Context(), box.ContainerID(),
		client.ContainerRemoveOptions{Force: true})
	noError(t, err)
	var lost *sandbox.LostError
	require.ErrorAs(t, <-accepted, &lost)
	require.Equal(t, sandbox.LostRemoved, lost.Cause)
	_, err = io.ReadAll(conn)
	require.True(t, errors.Is(err, sandbox.ErrCut) || errors.Is(err, sandbox.ErrLost), "%v", err)
	_, err = box.Listen(limit(t), "tcp", "127.0.0.1:0")
	require.ErrorIs(t, err, sandbox.ErrLost)
	noError(t, l.Close())
}

// A listener ends with Detach, and who attaches may listen at the same place; a program that
// connects in between is refused.
func TestListenDetached(t *testing.T) {
	t.Parallel()
	box := newBox(t, Config{Image: testImage, Network: "none", Keep: true})
	l := listenIn(t, box)
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(); accepted <- err }()
	noError(t, box.Detach())
	require.ErrorIs(t, <-accepted, sandbox.ErrClosed)
	next, err := Engine{}.Attach(context.Background(), box.ContainerID())
	noError(t, err)
	t.Cleanup(func() { next.Close() })
	ctx := limit(t)
	r, err := next.Execute(ctx, connects(l, "nobody")+" 2>&1 | tail -1")
	noError(t, err)
	if !strings.Contains(r.Output, "ConnectionRefusedError") {
		t.Errorf("got %+v", r)
	}
	again, err := next.Listen(ctx, "tcp", l.Addr().String())
	noError(t, err)
	j, err := next.Background(ctx, connects(again, "again"))
	noError(t, err)
	require.Equal(t, "again\n", answered(t, again))
	r, err = j.Wait(ctx)
	exited(t, r, err, "asked\nanswered yes\n")
}
