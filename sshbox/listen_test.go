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
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// listenInBox listens in a box, on a port that the box chooses, until the test ends.
func listenInBox(t *testing.T, box sandbox.Sandbox) net.Listener {
	t.Helper()
	l, err := box.Listen(testContext(t), "tcp", "127.0.0.1:0")
	noError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// connectCommand returns a command that connects to l, sends a line, reads to the end, and prints
// what it has read, or the error.
func connectCommand(l net.Listener, line string) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return `python3 -c '
import socket
c = socket.create_connection(("127.0.0.1", ` + port + `))
c.sendall(b"` + line + `\n")
print("asked", flush=True)
try: print("answered", c.makefile().read())
except OSError as e: print(e.strerror)'`
}

// answerOne accepts a connection, reads a line, answers and returns the line.
func answerOne(t *testing.T, l net.Listener) string {
	t.Helper()
	conn, err := l.Accept()
	noError(t, err)
	defer conn.Close()
	line := firstLine(t, conn)
	_, err = io.WriteString(conn, "yes")
	noError(t, err)
	return line
}

// firstLine reads a line from a connection, and nothing behind it.
func firstLine(t *testing.T, conn net.Conn) string {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(testenv.Limit))
	var line []byte
	for b := make([]byte, 1); b[0] != '\n'; line = append(line, b[0]) {
		_, err := conn.Read(b)
		noError(t, err)
	}
	return string(line)
}

// TestCutListen cuts the connection to the engine. An accepted connection is cut at both ends.
// Programs that connect during an outage are served after it.
func TestCutListen(t *testing.T) {
	t.Parallel()
	proxy := newEngineProxy(t)
	box := proxy.box(t, nil)
	ctx := testContext(t)
	l := listenInBox(t, box)
	for range 3 {
		j, err := box.Background(ctx, connectCommand(l, "before"))
		noError(t, err)
		conn, err := l.Accept()
		noError(t, err)
		require.Equal(t, "before\n", firstLine(t, conn))
		proxy.Cut()
		_, err = io.ReadAll(conn)
		require.ErrorIs(t, err, sandbox.ErrCut)
		_, err = conn.Write([]byte("x"))
		require.ErrorIs(t, err, sandbox.ErrCut)
		noError(t, conn.Close())
		r, err := j.Wait(ctx)
		wantExited(t, r, err, "asked\nConnection reset by peer\n")

		j, err = box.Background(ctx, connectCommand(l, "after"))
		noError(t, err)
		require.Equal(t, "after\n", answerOne(t, l))
		r, err = j.Wait(ctx)
		wantExited(t, r, err, "asked\nanswered yes\n")
	}
	j, err := box.Background(ctx, "sleep 1; "+connectCommand(l, "in the outage"))
	noError(t, err)
	proxy.Unplug(true)
	asked := make(chan string)
	go func() { asked <- answerOne(t, l) }()
	time.AfterFunc(2*time.Second, func() { proxy.Unplug(false) })
	require.Equal(t, "in the outage\n", <-asked)
	r, err := j.Wait(ctx)
	wantExited(t, r, err, "asked\nanswered yes\n")
}

// TestListenLost removes a box that listens. Accept and Listen return a LostError.
func TestListenLost(t *testing.T) {
	t.Parallel()
	box := newBox(t, Config{Image: testImage, Network: "none"})
	l := listenInBox(t, box)
	_, err := box.Background(testContext(t), connectCommand(l, "first"))
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
	_, err = box.Listen(testContext(t), "tcp", "127.0.0.1:0")
	require.ErrorIs(t, err, sandbox.ErrLost)
	noError(t, l.Close())
}

// TestListenDetached shows that Detach ends a listener. Programs that connect after that are
// refused, until the next owner listens on the same address.
func TestListenDetached(t *testing.T) {
	t.Parallel()
	box := newBox(t, Config{Image: testImage, Network: "none", Keep: true})
	l := listenInBox(t, box)
	accepted := make(chan error, 1)
	go func() { _, err := l.Accept(); accepted <- err }()
	noError(t, box.Detach())
	require.ErrorIs(t, <-accepted, sandbox.ErrClosed)
	next, err := Engine{}.Attach(context.Background(), box.ContainerID())
	noError(t, err)
	t.Cleanup(func() { next.Close() })
	ctx := testContext(t)
	r, err := next.Execute(ctx, connectCommand(l, "nobody")+" 2>&1 | tail -1")
	noError(t, err)
	if !strings.Contains(r.Output, "ConnectionRefusedError") {
		t.Errorf("got %+v", r)
	}
	again, err := next.Listen(ctx, "tcp", l.Addr().String())
	noError(t, err)
	j, err := next.Background(ctx, connectCommand(again, "again"))
	noError(t, err)
	require.Equal(t, "again\n", answerOne(t, again))
	r, err = j.Wait(ctx)
	wantExited(t, r, err, "asked\nanswered yes\n")
}
