package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// listenTo calls Listen. The listener is closed at the end of t.
func (b *box) listenTo(t testing.TB, network, address string) net.Listener {
	t.Helper()
	l, err := within(b, t, "Listen", func(ctx context.Context) (net.Listener, error) {
		return b.Listen(ctx, network, address)
	})
	require.NoErrorf(t, err, "Listen(%s, %s)", network, address)
	t.Cleanup(func() { l.Close() })
	return l
}

// acceptor serves connections, each in a goroutine, until Accept fails. Then ended receives the
// error of Accept and those of serve.
func acceptor(l net.Listener, serve func(net.Conn) error) (ended <-chan error) {
	last := make(chan error, 1)
	go func() {
		var serving sync.WaitGroup
		var mu sync.Mutex
		var failed error
		for {
			conn, err := l.Accept()
			if err != nil {
				serving.Wait()
				last <- errors.Join(failed, err)
				return
			}
			serving.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(limit))
				if err := serve(conn); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = errors.Join(failed, err)
				}
			})
		}
	}()
	return last
}

// closes closes a listener, after which its acceptor must end.
func (b *box) closes(t testing.TB, l net.Listener, ended <-chan error) {
	t.Helper()
	_, err := within(b, t, "Listener.Close", closeCall(l))
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, net.ErrClosed)
		require.NotErrorIs(t, err, sandbox.ErrClosed)
	case <-time.After(grace):
		t.Fatalf("Accept has not returned %v after Close", grace)
	}
	require.NoError(t, l.Close(), "Close again")
}

// closeWrite calls CloseWrite, which a connection of a box must have.
func closeWrite(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("%T has no CloseWrite", c)
	}
	return half.CloseWrite()
}

// echoes sends back all input.
func echoes(c net.Conn) error {
	if _, err := io.Copy(c, c); err != nil {
		return err
	}
	return closeWrite(c)
}

// clientScript is the begin of a client in the box. half(c) ends the client's half of a connection,
// and rest(c) reads all.
const clientScript = `
import socket, sys, hashlib, threading
network, address = sys.argv[1:3]
def connect():
    if network == "unix":
        c = socket.socket(socket.AF_UNIX)
        c.connect(address)
        return c
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host.strip("[]"), int(port)), timeout=60)
def half(c): c.shutdown(socket.SHUT_WR)
def rest(c):
    got = b""
    while True:
        d = c.recv(1 << 16)
        if not d: return got
        got += d
`

// client runs a client in the box, and returns what it prints.
func (b *box) client(t testing.TB, l net.Listener, script string, args ...string) string {
	t.Helper()
	return b.script(t, `exec python3 -c "$@"`, append(
		[]string{clientScript + script, l.Addr().Network(), l.Addr().String()}, args...)...)
}

// listen calls Listen, to which clients in the box connect.
func listen(t *testing.T, b *box) {
	b.need(t, "python3")
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			at := func(t *testing.T) net.Listener {
				if network == "unix" {
					return b.listenTo(t, network, b.dir(t)+"/socket")
				}
				return b.listenTo(t, network, "127.0.0.1:0")
			}
			t.Run("HalfClose", func(t *testing.T) { listenHalves(t, b, at(t)) })
			t.Run("ManyAtOnce", func(t *testing.T) { listenMany(t, b, at(t)) })
			t.Run("Large", func(t *testing.T) { listenLarge(t, b, at(t)) })
			t.Run("Close", func(t *testing.T) { listenClose(t, b, at(t)) })
			t.Run("Two", func(t *testing.T) { listenTwo(t, b, at(t), at(t)) })
		})
	}
	t.Run("Socket", func(t *testing.T) { listenSocket(t, b) })
	t.Run("Port", func(t *testing.T) { listenPort(t, b) })
	t.Run("Errors", func(t *testing.T) { listenErrors(t, b) })
}

// listenHalves ends one half of a connection. The other half goes on.
func listenHalves(t *testing.T, b *box, l net.Listener) {
	ended := acceptor(l, func(c net.Conn) error {
		question, err := io.ReadAll(c)
		if err == nil {
			_, err = io.WriteString(c, "you asked "+string(question))
		}
		return err
	})
	same(t, "you asked why\n",
		b.client(t, l, `c = connect(); c.sendall(b"why"); half(c); print(rest(c).decode())`))
	b.closes(t, l, ended)

	address := l.Addr().String() // which is free again
	if l.Addr().Network() == "tcp" {
		// Linux may have given the port to another program: see listenPort
		address = "127.0.0.1:0"
	}
	l = b.listenTo(t, l.Addr().Network(), address)
	answers := make(chan string, 1)
	ended = acceptor(l, func(c net.Conn) error {
		_, err := io.WriteString(c, "hello")
		if err := errors.Join(err, closeWrite(c)); err != nil {
			return err
		}
		answer, err := io.ReadAll(c)
		answers <- string(answer)
		return err
	})
	same(t, "hello\n",
		b.client(t, l,
			`c = connect(); print(rest(c).decode()); c.sendall(b"and welcome"); c.close()`))
	same(t, "and welcome", <-answers)
	b.closes(t, l, ended)
}

// listenClose closes a listener: accepted connections go on, others are refused, and the address
// is free.
func listenClose(t *testing.T, b *box, l net.Listener) {
	j := b.start(t, `exec python3 -c `+quote(clientScript+`
c = connect()
c.sendall(b"1")
c.recv(1) # after this, c is accepted
other = connect()
print("connected", flush=True)
try: print("turned away" if rest(other) == b"" else "served", flush=True)
except ConnectionResetError: print("turned away", flush=True)
c.sendall(b"2")
half(c)
print("got", rest(c).decode(), flush=True)
`)+" "+l.Addr().Network()+" "+quote(l.Addr().String()))
	conn, err := l.Accept()
	require.NoError(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(limit))
	_, err = io.WriteString(conn, "!")
	require.NoError(t, err)
	j.shown("connected")
	b.closes(t, l, acceptorOfNone(l))
	j.shown("turned away")
	require.NoError(t, echoes(conn))
	j.shown("got 12")
	j.ends(0)
	if path := l.Addr().String(); l.Addr().Network() == "unix" {
		b.script(t, `[ ! -e "$1" ]`, path)
	}
}

// acceptorOfNone is an acceptor that gets no connection: it closes the listener first.
func acceptorOfNone(l net.Listener) <-chan error {
	l.Close()
	return acceptor(l, func(net.Conn) error { return errors.New("accepted after Close") })
}

// listenTwo checks that each of two listeners gets its own connections.
func listenTwo(t *testing.T, b *box, first, second net.Listener) {
	says := func(what string) func(net.Conn) error {
		return func(c net.Conn) error { _, err := io.WriteString(c, what); return err }
	}
	firstEnded, secondEnded := acceptor(first, says("first")), acceptor(second, says("second"))
	same(t, "first\n", b.client(t, first, `print(rest(connect()).decode())`))
	same(t, "second\n", b.client(t, second, `print(rest(connect()).decode())`))
	b.closes(t, first, firstEnded)
	same(t, "second\n", b.client(t, second, `print(rest(connect()).decode())`))
	b.closes(t, second, secondEnded)
}

// listenSocket listens on sockets. Relative paths and ~ mean the same as in CopyTo, and the socket
// is the user's.
func listenSocket(t *testing.T, b *box) {
	name := "sandboxtest-" + string(b.marker(t))
	home := strings.TrimSuffix(b.script(t, `cd ~ && pwd`), "\n")
	for _, path := range []string{name, "~/" + name, b.dir(t) + "/with a space"} {
		l, err := within(b, t, "Listen", func(ctx context.Context) (net.Listener, error) {
			return b.Listen(ctx, "unix", path)
		})
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			continue // the box's user may not write there
		}
		require.NoError(t, err)
		at := l.Addr().String()
		require.True(t, strings.HasPrefix(at, "/"), at)
		if strings.HasPrefix(path, "~") {
			require.Equal(t, home+path[1:], at)
		}
		same(t, "its user's\n",
			b.script(t, `[ -S "$1" ] && set -- $(ls -ln "$1") && [ "$3" = "$(id -u)" ] && case $1 in srw-------*) echo "its user's";; esac`, at))
		same(t, "hi\n", func() string {
			ended := acceptor(l, func(c net.Conn) error {
				_, err := io.WriteString(c, "hi")
				return err
			})
			defer b.closes(t, l, ended)
			conn := b.dial(t, "unix", path) // the path means the same to Dial
			got, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Equal(t, "hi", string(got))
			return b.client(t, l, `print(rest(connect()).decode())`)
		}())
		b.script(t, `[ ! -e "$1" ]`, at)
	}
}

// listenPort listens on any port, and on a given one.
func listenPort(t *testing.T, b *box) {
	l := b.listenTo(t, "tcp", "localhost:0")
	host, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	require.NotEqual(t, "0", port)
	conn := b.dial(t, "tcp", l.Addr().String())
	accepted, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, accepted.Close())
	_, err = io.ReadAll(conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, l.Close())

	for taken := true; taken; {
		// below net.ipv4.ip_local_port_range: Linux chooses no such port itself
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		l, err := within(b, t, "Listen", func(ctx context.Context) (net.Listener, error) {
			return b.Listen(ctx, "tcp4", address)
		})
		if taken = errors.Is(err, syscall.EADDRINUSE); taken {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, address, l.Addr().String())
		require.NoError(t, l.Close())
		b.listenTo(t, "tcp4", address) // it is free again
	}
}

// listenErrors calls Listen for addresses that it must refuse.
func listenErrors(t *testing.T, b *box) {
	taken := b.listenTo(t, "tcp", "127.0.0.1:0").Addr().String()
	socket := b.listenTo(t, "unix", b.dir(t)+"/taken").Addr().String()
	var malformed *net.AddrError
	for _, c := range []struct {
		name, network, address string
		is                     error
		as                     any
	}{
		{"Taken", "tcp", taken, syscall.EADDRINUSE, nil},
		{"TakenSocket", "unix", socket, syscall.EADDRINUSE, nil},
		{"NoDirectory", "unix", b.tmp + "/none/socket", fs.ErrNotExist, nil},
		{"NoPath", "unix", "", fs.ErrInvalid, nil},
		{"LongPath", "unix", b.tmp + "/" + strings.Repeat("long", 40), syscall.EINVAL, nil},
		{"NoPort", "tcp", "127.0.0.1", nil, &malformed},
		{"BadPort", "tcp", "127.0.0.1:70000", nil, &malformed},
		{"NamedPort", "tcp", "127.0.0.1:http", nil, &malformed},
		{"Name", "tcp", "example.com:0", nil, &malformed},
		{"WrongFamily", "tcp6", "127.0.0.1:0", nil, &malformed},
		{"NoNetwork", "udp", "127.0.0.1:0", errors.ErrUnsupported, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := attempt("Listen", func(ctx context.Context) (net.Listener, error) {
				return b.Listen(ctx, c.network, c.address)
			})
			var op *net.OpError
			require.ErrorAs(t, err, &op)
			require.Equal(t, "listen", op.Op)
			require.Nil(t, l)
			if c.as != nil {
				require.ErrorAs(t, err, c.as)
			} else {
				require.ErrorIs(t, err, c.is)
			}
		})
	}
	t.Run("Permission", func(t *testing.T) {
		b.needNoRoot(t)
		_, err := attempt("Listen", func(ctx context.Context) (net.Listener, error) {
			return b.Listen(ctx, "unix", "/sandboxtest")
		})
		if !errors.Is(err, syscall.EROFS) {
			require.ErrorIs(t, err, fs.ErrPermission)
		}
	})
	t.Run("Cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := attempt("Listen", func(context.Context) (net.Listener, error) {
			return b.Listen(ctx, "tcp", "127.0.0.1:0")
		})
		require.ErrorIs(t, err, context.Canceled)
	})
}
