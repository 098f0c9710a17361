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

// A Host is a machine at the other end of SSH connections.
type Host struct {
	*pool
	env    []string       // given to every program, before its own
	starts *sshconn.Group // what Start has under way

	noFiles atomic.Pointer[error] // why the subsystem sftp is of no use; nil if it may be

	closing sync.Once
	closed  chan struct{} // closed when Close is done
}

var _ shellbox.Host = (*Host)(nil)

// Config says how a Host uses its server.
type Config struct {
	// Dial makes one more connection.
	Dial func(ctx context.Context) (*sshconn.Conn, error)
	// MaxSessions is how many programs share a connection. Default: 10. If the server takes fewer,
	// the Host finds out.
	MaxSessions int
	// Env is given to every program, before its own: "NAME=value".
	Env []string
}

// New makes a Host of the first connection. The Host owns it from then on, and the connections that
// it makes later.
func New(first *sshconn.Conn, c Config) *Host {
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	return &Host{pool: newPool(first, c.MaxSessions, c.Dial), env: c.Env,
		starts: sshconn.NewGroup(), closed: make(chan struct{})}
}

// String names the kind of sandbox.
func (h *Host) String() string { return "SSHBox" }

// Lost asks the server for a sign of life, unless the connection is known to have ended.
func (h *Host) Lost(ctx context.Context) error {
	c := h.first()
	if !c.CheckEnded(ctx) {
		return nil
	}
	reason, err := c.Reason()
	return &sandbox.LostError{Box: h.String(), Reason: reason, Cause: sandbox.LostConnection,
		Err: err}
}

// explain makes err say that the host is gone or closed, if it is. It asks the server, unless err
// is an answer of the server's: at a connection's end x/crypto returns whatever has ended it, a
// moment before it is known to have ended.
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

// lostError is explain for a connection that is known to have ended.
func (h *Host) lostError() error { return h.explain(context.Background(), sshconn.ErrGone) }

// isServersAnswer reports whether err is what the server has answered, or the program that was started
// there.
func isServersAnswer(err error) bool {
	var channel *ssh.OpenChannelError
	var request *sshconn.RefusedError
	var path *fs.PathError
	return errors.As(err, &channel) || errors.As(err, &request) || errors.As(err, &path)
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
