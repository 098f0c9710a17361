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
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// network: Dial, to servers on the box's loopback, and Listen.
func (s *suite) network(t *testing.T) {
	b := s.box(t)
	t.Run("45_HTTP", func(t *testing.T) { dialHTTP(t, b) })
	t.Run("45_Echo", func(t *testing.T) { dialEcho(t, b) })
	t.Run("45_Errors", func(t *testing.T) { dialErrors(t, b) })
	t.Run("45_Listen", func(t *testing.T) { listen(t, b) })
}

// dial is Dial, which may not fail; the connection is closed at the end of t.
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

// listening waits until a job says "port N" and returns "127.0.0.1:N".
func (j *job) listening() string {
	j.t.Helper()
	m := portRE.FindStringSubmatch(j.shown("port ") + j.shown("\n"))
	require.NotNil(j.t, m, "a port in the job's log")
	return "127.0.0.1:" + m[1]
}

// echoServer sends each connection's bytes back when its input has ended, and then ends it.
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

func dialHTTP(t *testing.T, b *box) {
	t.Parallel()
	b.need(t, "python3")
	sh := b.open(t)
	sh.output("echo from inside > page")
	j := &job{nil, b, t}
	j.Job = b.start(t,
		"cd "+quote(sh.dir)+" && exec python3 -u -m http.server --bind 127.0.0.1 0").Job
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

func dialEcho(t *testing.T, b *box) {
	t.Parallel()
	b.need(t, "python3")
	j := b.start(t, echoServer)
	address := j.listening()
	t.Run("HalfClose", func(t *testing.T) {
		conn := b.dial(t, "tcp", address)
		_, err := io.WriteString(conn, "ping")
		require.NoError(t, err)
		pong := make([]byte, 4)
		_, err = io.ReadFull(conn, pong)
		require.NoError(t, err)
		require.Equal(t, "pong", string(pong))
		closer, ok := conn.(interface{ CloseWrite() error })
		require.True(t, ok, "%T has no CloseWrite", conn)
		require.NoError(t, closer.CloseWrite())
		rest, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "ping", string(rest))
	})
	t.Run("Large", func(t *testing.T) {
		conn := b.dial(t, "tcp", address)
		want := strings.Repeat("0123456789abcde\n", b.suite.count(10_000_000)/16)
		go func() {
			io.WriteString(conn, want)
			conn.(interface{ CloseWrite() error }).CloseWrite()
		}()
		got, err := io.ReadAll(conn)
		require.NoError(t, err)
		same(t, want, string(got))
	})
	t.Run("ManyAtOnce", func(t *testing.T) {
		errs := make(chan error, 50)
		var wg sync.WaitGroup
		for i := range cap(errs) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				errs <- echo(b, address, fmt.Sprintf("message %d", i))
			}()
		}
		wg.Wait()
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
	})
	t.Run("Deadline", func(t *testing.T) {
		conn := b.dial(t, "tcp", address)
		conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.True(t, timeout.Timeout())
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
			t.Fatal("Read hangs after Close")
		}
	})
	t.Run("Unix", func(t *testing.T) {
		path := b.dir(t) + "/socket"
		server := b.start(t,
			strings.NewReplacer(`socket.create_server(("127.0.0.1", 0), backlog=100)`,
				`socket.socket(socket.AF_UNIX); s.bind("`+path+`"); s.listen()`,
				`s.getsockname()[1]`, `0`).Replace(echoServer))
		server.shown("port 0\n")
		conn := b.dial(t, "unix", path)
		_, err := io.WriteString(conn, "ping")
		require.NoError(t, err)
		pong := make([]byte, 4)
		_, err = io.ReadFull(conn, pong)
		require.NoError(t, err)
		require.Equal(t, "pong", string(pong))
	})
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
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(conn)
	if err == nil && string(got) != message {
		err = fmt.Errorf("got %q back for %q", got, message)
	}
	return err
}

func dialErrors(t *testing.T, b *box) {
	t.Parallel()
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
