package sshconn

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// resizable is open, but the test answers the requests on the channel.
func resizable(t *testing.T, c *Conn, s *server) (*Stream, <-chan *ssh.Request) {
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

// Resize waits for the server's answer, and says the size as RFC 4254 has it.
func TestResize(t *testing.T) {
	c, s := connect(t)
	stream, requests := resizable(t, c, s)
	done := async(func() error { return stream.Resize(50, 132) })
	r := soon(t, "the request", requests)
	require.Equal(t, "window-change", r.Type)
	require.Equal(t, ssh.Marshal(&struct{ Cols, Rows, W, H uint32 }{132, 50, 0, 0}), r.Payload)
	select {
	case <-done:
		t.Fatal("it has not waited for the answer")
	default:
	}
	r.Reply(true, nil)
	require.NoError(t, soon(t, "Resize", done))
}

// While a server does not answer, Resize returns, and its goroutine ends with the connection:
// goleak looks for it.
func TestResizeWithoutAnswer(t *testing.T) {
	c, s := connect(t)
	stream, requests := resizable(t, c, s)
	require.NoError(t, stream.Resize(24, 80))
	soon(t, "the request", requests)
	done := async(func() error { return stream.Resize(50, 132) }) // waits for the first answer
	stream.Close()
	require.ErrorIs(t, soon(t, "Resize", done), net.ErrClosed)
	c.Close()
	require.ErrorIs(t, stream.Resize(24, 80), net.ErrClosed)
}
