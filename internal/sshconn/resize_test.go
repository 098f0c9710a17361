package sshconn

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// openWithRequests makes a stream like open. The test answers the requests on the channel.
func openWithRequests(t *testing.T, c *Conn, s *server) (*Stream, <-chan *ssh.Request) {
	t.Helper()
	accepted := async(func() <-chan *ssh.Request {
		_, requests, err := (<-s.channels).Accept()
		if err != nil {
			return nil
		}
		return requests
	})
	ch, requests, err := c.Client.OpenChannel("session", nil)
	require.NoError(t, err)
	go ssh.DiscardRequests(requests)
	return NewStream(ch, c.Group), soon(t, "the channel", accepted)
}

// TestResize checks that Resize sends the message of RFC 4254 and waits for the server's answer.
func TestResize(t *testing.T) {
	c, s := connect(t)
	stream, requests := openWithRequests(t, c, s)
	done := async(func() error { return stream.Resize(50, 132) })
	r := soon(t, "the request", requests)
	require.Equal(t, "window-change", r.Type)
	require.Equal(t, ssh.Marshal(&struct{ Cols, Rows, W, H uint32 }{132, 50, 0, 0}), r.Payload)
	select {
	case <-done:
		t.Fatal("Resize has not waited for the answer")
	default:
	}
	r.Reply(true, nil)
	require.NoError(t, soon(t, "Resize", done))
}

// TestResizeWithoutAnswer checks that Resize returns if the server does not answer. Its goroutine
// ends with the connection, as goleak checks.
func TestResizeWithoutAnswer(t *testing.T) {
	c, s := connect(t)
	stream, requests := openWithRequests(t, c, s)
	require.NoError(t, stream.Resize(24, 80))
	soon(t, "the request", requests)
	done := async(func() error { return stream.Resize(50, 132) }) // waits for the first answer
	stream.Close()
	require.ErrorIs(t, soon(t, "Resize", done), net.ErrClosed)
	c.Close()
	require.ErrorIs(t, stream.Resize(24, 80), net.ErrClosed)
}
