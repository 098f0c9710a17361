package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
)

// network calls Dial, to servers on the box's loopback, and Listen.
func (s *suite) network(t *testing.T) {
	b := s.box(t)
	b.sections(t, []section{
		{"45_HTTP", dialHTTP},
		{"45_Echo", dialEcho},
		{"45_Errors", dialErrors},
		{"45_Listen", listen},
	})
}

// dial calls Dial. The connection is closed at the end of t.
func (b *box) dial(t testing.TB, network, address string) net.Conn {
	t.Helper()
	conn, err := within(b, t, "Dial", func(ctx context.Context) (net.Conn, error) {
		return b.Dial(ctx, network, address)
	})
	require.NoErrorf(t, err, "Dial(%s, %s)", network, address)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(limit))
	return conn
}

var portRE = regexp.MustCompile(`port (\d+)`)

// listening waits until a job prints "port N", and returns "127.0.0.1:N".
func (j *job) listening() string {
	j.t.Helper()
	m := portRE.FindStringSubmatch(j.shown("port ") + j.shown("\n"))
	require.NotNil(j.t, m, "a port in the job's log")
	return "127.0.0.1:" + m[1]
}

// echoServer sends each connection's input back after its end, and then closes the connection. It
// answers a first "ping" at once.
const echoServer = `python3 -c '
import socket, threading
s = socket.create_server(("127.0.0.1", 0), backlog=100)
print("port", s.getsockname()[1], flush=True)
def serve(c):
    got = b""
    while True:
        d = c.recv(65536)
        if not d: break
        got += d
        if got == b"ping": c.sendall(b"pong")
    c.sendall(got)
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],)).start()
'`

// dialHTTP uses Dial for an HTTP client.
func dialHTTP(t *testing.T, b *box) {
	b.need(t, "python3")
	sh := b.open(t)
	sh.output("echo from inside > page")
	j := b.start(t, "exec python3 -u -m http.server --bind 127.0.0.1 0", sandbox.Dir(sh.dir))
	address := j.listening()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: b.Dial},
		Timeout: limit}
	for range 5 {
		res, err := client.Get("http://" + address + "/page")
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		same(t, "from inside\n", string(body))
	}
	j.kill()
	_, err := within(b, t, "Dial", func(ctx context.Context) (net.Conn, error) {
		return b.Dial(ctx, "tcp", address)
	})
	require.Error(t, err, "Dial after the server's end")
}

// dialEcho uses connections to echoServer.
func dialEcho(t *testing.T, b *box) {
	b.need(t, "python3")
	j := b.start(t, echoServer)
	address := j.listening()
	t.Run("HalfClose", func(t *testing.T) {
		conn := b.dial(t, "tcp", address)
		pings(t, conn)
		require.NoError(t, closeWrite(conn))
		rest, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "ping", string(rest))
	})
	t.Run("Large", func(t *testing.T) {
		conn := b.dial(t, "tcp", address)
		want := strings.Repeat("0123456789abcde\n", b.suite.count(10_000_000)/16)
		go func() {
			io.WriteString(conn, want)
			closeWrite(conn)
		}()
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		same(t, want, string(got))
	})
	t.Run("ManyAtOnce", func(t *testing.T) {
		require.NoError(t, together(50, func(i int) error {
			return echo(b, address, fmt.Sprintf("message %d", i))
		}))
	})
	t.Run("Deadline", func(t *testing.T) {
		conn := b.dial(t, "tcp", address)
		conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		require.Truef(t, isTimeout(err), "Read after its deadline: want a net.Error whose Timeout "+
			"is true, got %v", err)
	})
	t.Run("CloseFreesRead", func(t *testing.T) {
		conn := b.dial(t, "tcp", address)
		done := make(chan error)
		go func() { _, err := conn.Read(make([]byte, 1)); done <- err }()
		require.NoError(t, conn.Close())
		select {
		case err := <-done:
			require.Error(t, err)
		case <-time.After(grace):
			t.Fatalf("Read has not returned %v after Close", grace)
		}
	})
	t.Run("Unix", func(t *testing.T) {
		path := b.dir(t) + "/socket"
		server := b.start(t,
			strings.NewReplacer(`socket.create_server(("127.0.0.1", 0), backlog=100)`,
				`socket.socket(socket.AF_UNIX); s.bind("`+path+`"); s.listen()`,
				`s.getsockname()[1]`, `0`).Replace(echoServer))
		server.shown("port 0\n")
		pings(t, b.dial(t, "unix", path))
	})
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// pings sends "ping" to echoServer, and receives its answer.
func pings(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.WriteString(conn, "ping")
	require.NoError(t, err)
	pong := make([]byte, 4)
	_, err = io.ReadFull(conn, pong)
	require.NoError(t, err)
	require.Equal(t, "pong", string(pong))
}

// echo sends a message on a connection of its own, and checks what comes back.
func echo(b *box, address, message string) error {
	conn, err := attempt("Dial", func(ctx context.Context) (net.Conn, error) {
		return b.Dial(ctx, "tcp", address)
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(limit))
	if _, err := io.WriteString(conn, message); err != nil {
		return err
	}
	if err := closeWrite(conn); err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if err == nil && string(got) != message {
		err = fmt.Errorf("the echo of %q is %q", message, got)
	}
	return err
}

// dialErrors calls Dial for addresses where nothing listens.
func dialErrors(t *testing.T, b *box) {
	for _, c := range []struct{ name, network, address string }{
		{"Refused", "tcp", "127.0.0.1:1"},
		{"NoSocket", "unix", b.tmp + "/no socket"},
		{"NoPath", "unix", ""},
		{"NoPort", "tcp", "127.0.0.1"},
		{"NoNetwork", "carrier pigeon", "127.0.0.1:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := attempt("Dial", func(ctx context.Context) (net.Conn, error) {
				return b.Dial(ctx, c.network, c.address)
			})
			if err == nil {
				conn.Close()
			}
			require.Error(t, err)
			require.NotErrorIs(t, err, errHangs)
			if c.name == "NoPath" {
				require.ErrorContains(t, err, `dial unix "": `)
			} else if c.name != "NoNetwork" {
				if errors.Is(err, errors.ErrUnsupported) {
					b.suite.skip(t, "unsupported by this box: "+err.Error())
				}
				require.ErrorContains(t, err, c.address)
			}
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		})
	}
	t.Run("Cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := within(b, t, "Dial", func(context.Context) (net.Conn, error) {
			return b.Dial(ctx, "tcp", "127.0.0.1:1")
		})
		require.ErrorIs(t, err, context.Canceled)
	})
	b.open(t).lives()
}
