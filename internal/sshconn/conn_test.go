package sshconn

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

func TestRequest(t *testing.T) {
	c, s := connect(t)
	type answer struct {
		reply string
		err   error
	}
	request := func(ctx context.Context) <-chan answer {
		return async(func() answer {
			reply, err := c.Request(ctx, "test@sandshell", []byte("question"))
			return answer{string(reply), err}
		})
	}
	asked := request(t.Context())
	r := soon(t, "the question", s.requests)
	require.Equal(t, "question", string(r.Payload))
	require.NoError(t, r.Reply(true, []byte("answer")))
	require.Equal(t, answer{"answer", nil}, soon(t, "the answer", asked))

	asked = request(t.Context())
	require.NoError(t, soon(t, "the question", s.requests).Reply(false, []byte("not today")))
	refused := soon(t, "the refusal", asked)
	require.EqualError(t, refused.err, "the server refuses test@sandshell: not today")

	given := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked = request(ctx)
	unanswered := soon(t, "the question", s.requests)
	cancel(given)
	require.ErrorIs(t, soon(t, "the end of ctx", asked).err, given)
	require.NoError(t, unanswered.Reply(true, nil)) // x/crypto makes one request at a time
	asked = request(t.Context())
	soon(t, "the question", s.requests)
	c.Abort(given)
	require.Error(t, soon(t, "the end", asked).err)
	soon(t, "Gone", c.Gone())
	require.ErrorIs(t, c.Err(), given)

	require.Error(t, soon(t, "no answer", request(t.Context())).err, "after the end")
	c.Close()
	require.ErrorIs(t, soon(t, "no answer", request(t.Context())).err, ErrGone, "after Close")
}

func TestKeep(t *testing.T) {
	c, s := connect(t)
	c.Keep(time.Millisecond, 1000)
	for range 5 {
		// a refusal is a sign of life
		require.NoError(t, soon(t, "a question", s.requests).Reply(false, nil))
	}
	require.False(t, c.Ended())
}

// TestOnEnd checks that OnEnd calls its function once: when the connection ends, or at once if it
// has ended.
func TestOnEnd(t *testing.T) {
	c, _ := connect(t)
	called := make(chan error, 2)
	c.OnEnd(func() { called <- c.Err() })
	require.Empty(t, called)
	given := errors.New("given up")
	c.Abort(given)
	require.ErrorIs(t, soon(t, "the call", called), given)
	c.OnEnd(func() { called <- c.Err() })
	require.ErrorIs(t, soon(t, "the call", called), given)
	c.Close()
	require.Empty(t, called)
}

// A mute connection answers nothing.
type mute struct {
	ssh.Conn
	closed chan struct{}
}

func (m mute) SendRequest(string, bool, []byte) (bool, []byte, error) {
	<-m.closed
	return false, nil, net.ErrClosed
}

func (m mute) Close() error { close(m.closed); return nil }

// TestKeepBehindOutput checks that a connection does not end while output arrives, even if the
// answer waits behind it.
func TestKeepBehindOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mute{closed: make(chan struct{})}
		c := &Conn{Group: NewGroup(), Client: m, line: new(meter), gone: make(chan struct{})}
		kept := async(func() time.Time {
			k := keeper{interval: time.Second, misses: 10}
			for range time.Tick(k.interval) {
				if err := k.check(c); err != nil {
					c.Abort(err)
					break
				}
			}
			return time.Now()
		})
		for range 100 {
			c.line.received.Add(1)
			time.Sleep(8500 * time.Millisecond)
		}
		require.Empty(t, kept)
		last := time.Now().Add(-8500 * time.Millisecond)
		require.InDelta(t, 10*time.Second, (<-kept).Sub(last), float64(time.Second))
		require.ErrorIs(t, c.cause, errSilent)
		c.Stop()
		c.Wait()
	})
}

func TestKeepOnSilentConnection(t *testing.T) {
	c, s := connect(t)
	done := make(chan struct{})
	go func() { // the server answers, but silent drops the answers
		defer close(done)
		for {
			select {
			case r := <-s.requests:
				r.Reply(false, nil)
			case <-c.Gone():
				return
			}
		}
	}()
	require.False(t, c.CheckEnded(t.Context()))
	close(s.raw.silent)
	c.Keep(time.Millisecond, 2)
	soon(t, "the end", c.Gone())
	require.ErrorContains(t, c.Err(), "no answer for 2ms")
	reason, err := c.Reason()
	require.Equal(t, "the server does not answer", reason)
	require.Equal(t, c.Err(), err)
	require.True(t, c.Ended())
	require.True(t, c.CheckEnded(t.Context()))
	<-done
}

func TestHandshakeRefused(t *testing.T) {
	config := &ssh.ClientConfig{HostKeyCallback: ssh.InsecureIgnoreHostKey()}
	near, far := net.Pipe()
	far.Close()
	var unwelcome *UnwelcomeError
	_, err := Handshake(t.Context(), near, "test", config, nil)
	require.ErrorAs(t, err, &unwelcome)

	near, far = net.Pipe() // a server that sends nothing
	defer far.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	handshake := async(func() error {
		_, err := Handshake(ctx, near, "test", config, nil)
		return err
	})
	far.Read(make([]byte, 1)) // the handshake has begun
	cancel(ErrNoHandshake)
	require.ErrorIs(t, soon(t, "the handshake", handshake), ErrNoHandshake)
}
