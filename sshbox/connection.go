package sshbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// A connection is one SSH connection, and what runs on it.
type connection struct {
	*group
	client *ssh.Client
	line   *meter

	gone chan struct{} // closed when the connection has ended
	why  error         // and why it has; set before

	mu    sync.Mutex
	cause error // why this side ended it

	use usage // guarded by the pool
}

// handshake makes an SSH connection out of a byte stream, which it owns from now on. It ends with ctx:
// x/crypto itself bounds nothing of it, and a server may accept and then say nothing for ever.
func handshake(ctx context.Context, raw net.Conn, address string, config *ssh.ClientConfig) (*connection, error) {
	line := &meter{Conn: raw, r: bufio.NewReaderSize(raw, 64<<10)}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		raw.Close()
		close(interrupted)
	})
	c, channels, requests, err := ssh.NewClientConn(line, address, config)
	if !stop() {
		<-interrupted
		if err == nil {
			c.Close()
		}
		return nil, context.Cause(ctx)
	}
	if err != nil {
		raw.Close()
		if line.received.Load() == 0 {
			return nil, &unwelcomeError{err}
		}
		return nil, err
	}
	conn := &connection{group: newGroup(), client: ssh.NewClient(c, channels, requests), line: line, gone: make(chan struct{})}
	conn.run(conn.watch)
	return conn, nil
}

var errNoHandshake = errors.New("no SSH handshake")

// An unwelcomeError says that the server hung up without a word, as OpenSSH does when too many have connected who
// have not logged in yet (MaxStartups).
type unwelcomeError struct{ err error }

func (e *unwelcomeError) Error() string {
	return "the server closed the connection before it said anything: " + e.err.Error()
}
func (e *unwelcomeError) Unwrap() error { return e.err }

// watch learns the connection's end.
func (c *connection) watch() {
	err := c.client.Wait()
	c.mu.Lock()
	if c.cause != nil {
		err = c.cause
	}
	c.mu.Unlock()
	c.why = err
	close(c.gone)
}

// abort ends the connection because of cause.
func (c *connection) abort(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	c.client.Close()
}

// close ends the connection and waits for all that ran on it.
func (c *connection) close() {
	c.stop()
	c.abort(net.ErrClosed)
	c.wait()
}

// ended reports whether the connection is gone.
func (c *connection) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// ends reports whether the connection has ended or is about to. Its channels, and what is written to it, fail a moment before it says so itself, and in
// many words: if the server still answers, it has not. The end of ctx is no.
func (c *connection) ends(ctx context.Context) bool {
	if c.ended() {
		return true
	}
	select {
	case <-c.gone:
		return true
	case <-c.ask():
	case <-ctx.Done():
	}
	return false
}

// keep asks the server every interval whether it is there, and ends the connection when nothing at all has come from
// it for misses intervals after a question.
func (c *connection) keep(interval time.Duration, misses int) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var asked chan struct{} // closed by the answer
	var unanswered int
	var received uint64
	for {
		select {
		case <-c.gone:
			return
		case <-c.stopped:
			return
		case <-tick.C:
		}
		if now := c.line.received.Load(); now != received {
			received, unanswered = now, 0 // it lives, even if the answer waits behind other output
		}
		if asked != nil {
			select {
			case <-asked:
				asked, unanswered = nil, 0
			default:
				if unanswered++; unanswered >= misses {
					c.abort(fmt.Errorf("%w for %v", errSilent, time.Duration(misses)*interval))
					return
				}
				continue
			}
		}
		asked = c.ask()
	}
}

var errSilent = errors.New("no answer")

// ask asks the server for a sign of life; the channel is closed when it has come.
func (c *connection) ask() chan struct{} {
	answer := make(chan struct{})
	c.run(func() {
		// Every server answers a global request that wants a reply, if only that it does not know it.
		if _, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil); err == nil {
			close(answer)
		}
	})
	return answer
}

// reason puts the end of the connection in words.
func (c *connection) reason() (string, error) {
	switch {
	case errors.Is(c.why, errSilent):
		return "the server does not answer", c.why
	case errors.Is(c.why, io.EOF), errors.Is(c.why, io.ErrUnexpectedEOF):
		return "connection closed by the server", nil
	case errors.Is(c.why, syscall.ECONNRESET), errors.Is(c.why, syscall.EPIPE):
		return "connection reset by the server", nil
	case errors.Is(c.why, net.ErrClosed):
		return "connection closed", nil
	}
	return "connection broken", c.why
}

// A meter counts what comes, and reads it in large pieces: x/crypto reads 4 KiB at a time.
type meter struct {
	net.Conn
	r        *bufio.Reader
	received atomic.Uint64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.received.Add(uint64(n))
	return n, err
}
