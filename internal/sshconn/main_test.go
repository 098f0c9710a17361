package sshconn

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds the wait for something that should happen at once.
const patience = 10 * time.Second

// soon receives from a channel.
func soon[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// async runs f, and returns the channel of its result.
func async[T any](f func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}

// A server is an SSH server of x/crypto at the other end of a Conn.
type server struct {
	raw      *stoppable // the client's end of the TCP connection
	far      *net.TCPConn
	requests chan *ssh.Request
	channels chan ssh.NewChannel
}

// A stoppable connection drops what arrives once silent is closed.
type stoppable struct {
	net.Conn
	silent chan struct{}
}

func (s *stoppable) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	for err == nil {
		select {
		case <-s.silent:
			n, err = s.Conn.Read(p)
			continue
		default:
		}
		break
	}
	return n, err
}

// pair returns both ends of a TCP connection.
func pair(t testing.TB) (near, far net.Conn) {
	t.Helper()
	// net.Pipe has no buffer: two ends that write at the same time would both block.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	near, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, err)
	return near, far
}

func hostKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return signer
}

// connect makes a Conn and the server at its other end. Both end with the test.
func connect(t testing.TB) (*Conn, *server) {
	t.Helper()
	near, far := pair(t)
	signer := hostKey(t)
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	s := &server{raw: &stoppable{Conn: near, silent: make(chan struct{})}, far: far.(*net.TCPConn),
		requests: make(chan *ssh.Request), channels: make(chan ssh.NewChannel)}
	ended, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer far.Close()
		conn, channels, requests, err := ssh.NewServerConn(far, config)
		if err != nil {
			return
		}
		for channels != nil || requests != nil {
			select {
			case c, ok := <-channels:
				if !ok {
					channels = nil
					continue
				}
				select {
				case s.channels <- c:
				case <-gone:
				}
			case r, ok := <-requests:
				if !ok {
					requests = nil
					continue
				}
				select {
				case s.requests <- r:
				case <-gone:
				}
			}
		}
		conn.Wait()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := Handshake(ctx, s.raw, "test", &ssh.ClientConfig{
		HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())}, nil)
	if err != nil {
		near.Close()
		<-ended
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(gone)
		c.Close()
		<-ended
	})
	return c, s
}

// open makes a stream, and returns the server's end of its channel too.
func open(t testing.TB, c *Conn, s *server) (*Stream, ssh.Channel) {
	t.Helper()
	accepted := async(func() ssh.Channel {
		ch, requests, err := (<-s.channels).Accept()
		if err != nil {
			return nil
		}
		go ssh.DiscardRequests(requests)
		return ch
	})
	ch, requests, err := c.Client.OpenChannel("test", nil)
	require.NoError(t, err)
	go ssh.DiscardRequests(requests)
	return NewStream(ch, c.Group), soon(t, "the channel", accepted)
}
