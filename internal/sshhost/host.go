package sshhost

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"golang.org/x/crypto/ssh"
)

// A Host is a shellbox.Host on a machine with an sshd. New makes one.
type Host struct {
	*pool
	env    []string       // Config.Env
	starts *sshconn.Group // the goroutines of Start and OpenFiles

	noFiles atomic.Pointer[error] // why the subsystem sftp does not work; nil if it may work

	closing sync.Once
	closed  chan struct{} // closed when Close is done
}

var _ shellbox.Host = (*Host)(nil)

// Config says how a Host uses its server.
type Config struct {
	// Dial makes one more connection to the server.
	Dial func(ctx context.Context) (*sshconn.Conn, error)
	// MaxSessions is how many programs may share a connection. The default is 10. If the server
	// allows fewer, the Host finds out.
	MaxSessions int
	// Env has variables for all programs, as "NAME=value". A program's own variables take
	// precedence.
	Env []string
}

// New makes a Host of a connection. The Host owns first, and the connections that it makes later.
func New(first *sshconn.Conn, c Config) *Host {
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	return &Host{pool: newPool(first, c.MaxSessions, c.Dial), env: c.Env,
		starts: sshconn.NewGroup(), closed: make(chan struct{})}
}

// String returns "SSHBox".
func (h *Host) String() string { return "SSHBox" }

// Lost returns a *sandbox.LostError if the first connection has ended, else nil. It asks the server
// for a sign of life, and returns nil if ctx ends before it knows.
func (h *Host) Lost(ctx context.Context) error {
	c := h.first()
	if !c.CheckEnded(ctx) {
		return nil
	}
	reason, err := c.Reason()
	return &sandbox.LostError{Box: h.String(), Reason: reason, Cause: sandbox.LostConnection,
		Err: err}
}

// explain returns sandbox.ErrClosed if the Host is closed, a LostError if the connection has ended,
// and err otherwise. Unless err is an answer of the server, explain asks the server: at a
// connection's end x/crypto returns various errors, a moment before Ended says so.
func (h *Host) explain(ctx context.Context, err error) error {
	select {
	case <-h.starts.Stopped():
		return sandbox.ErrClosed
	default:
	}
	if !h.first().Ended() && isServersAnswer(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if lost := h.Lost(ctx); lost != nil {
		return lost
	}
	return err
}

// lostError returns the error of calls after the first connection has ended.
func (h *Host) lostError() error { return h.explain(context.Background(), sshconn.ErrGone) }

// isServersAnswer reports whether err is an answer of the server or of the script.
func isServersAnswer(err error) bool {
	var channel *ssh.OpenChannelError
	var request *sshconn.RefusedError
	var path *fs.PathError
	return errors.As(err, &channel) || errors.As(err, &request) || errors.As(err, &path)
}

// Close closes all connections, and returns when their goroutines have ended. Closing again waits,
// and does nothing else.
func (h *Host) Close() error {
	h.closing.Do(func() {
		h.endSpare()
		h.starts.Stop()
		h.pool.close()
		h.starts.Wait()
		close(h.closed)
	})
	<-h.closed
	return nil
}
