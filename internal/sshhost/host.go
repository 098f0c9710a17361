package sshhost

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Host is a machine at the other end of SSH connections.
type Host struct {
	*pool
	env    []string       // given to every program, before its own
	starts *sshconn.Group // what Start has under way

	closing sync.Once
	closed  chan struct{} // closed when Close is done
}

var _ shellbox.Host = (*Host)(nil)

// Config says how a Host uses its server.
type Config struct {
	// Dial makes one more connection.
	Dial func(ctx context.Context) (*sshconn.Conn, error)
	// MaxSessions is how many programs share a connection. Default: 10. If the server takes fewer, the Host finds out.
	MaxSessions int
	// Env is given to every program, before its own: "NAME=value".
	Env []string
}

// New makes a Host of the first connection. The Host owns it from then on, and the connections that it makes later.
func New(first *sshconn.Conn, c Config) *Host {
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	return &Host{pool: newPool(first, c.MaxSessions, c.Dial), env: c.Env, starts: sshconn.NewGroup(), closed: make(chan struct{})}
}

// String names the kind of sandbox.
func (h *Host) String() string { return "SSHBox" }

// Lost asks the server for a sign of life, unless the connection is known to have ended.
func (h *Host) Lost(ctx context.Context) error {
	c := h.first()
	if !c.Ends(ctx) {
		return nil
	}
	reason, err := c.Reason()
	return &sandbox.LostError{Box: h.String(), Reason: reason, Cause: sandbox.LostConnection, Err: err}
}

// explain makes err say that the host is gone or closed, if it is.
func (h *Host) explain(err error) error {
	select {
	case <-h.starts.Stopped():
		return sandbox.ErrClosed
	default:
	}
	if !h.first().Ended() && !endOfConnection(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if lost := h.Lost(ctx); lost != nil {
		return lost
	}
	return err
}

// endOfConnection reports whether err may come from the end of a connection. (x/crypto says
// "unexpected packet in response to channel open: <nil>" then.)
func endOfConnection(err error) bool {
	for _, end := range []error{sshconn.ErrGone, errNoStatus, io.EOF, io.ErrClosedPipe, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, end) {
			return true
		}
	}
	return strings.Contains(err.Error(), "unexpected packet in response to channel open: <nil>")
}

// Close closes all connections, and returns when their goroutines have ended.
func (h *Host) Close() error {
	h.closing.Do(func() {
		h.starts.Stop()
		h.pool.close()
		h.starts.Wait()
		close(h.closed)
	})
	<-h.closed
	return nil
}
