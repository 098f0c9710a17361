package sshbox

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A host is a machine at the other end of SSH connections.
type host struct {
	name  string   // String
	env   []string // given to every program, before its own
	scrub []string // variables of the server's that no program gets
	*pool
	starts *group // what Start has under way

	// autopsy learns more about a connection's end, if there is more to be learnt; nil if not.
	autopsy func(ctx context.Context, c *connection) error

	closing sync.Once
	closed  chan struct{} // closed when Close is done
}

var _ shellbox.Host = (*host)(nil)

func newHost(name string, env []string, p *pool) *host {
	return &host{name: name, env: env, pool: p, starts: newGroup(), closed: make(chan struct{})}
}

func (h *host) String() string { return h.name }

// Lost asks the server for a sign of life, unless the connection is known to have ended.
func (h *host) Lost(ctx context.Context) error {
	c := h.first()
	if !c.ends(ctx) {
		return nil
	}
	if h.autopsy != nil {
		return h.autopsy(ctx, c)
	}
	reason, err := c.reason()
	return &sandbox.LostError{Box: h.name, Reason: reason, Err: err}
}

// explain makes err say that the host is gone or closed, if it is.
func (h *host) explain(err error) error {
	select {
	case <-h.starts.stopped:
		return sandbox.ErrClosed
	default:
	}
	if !h.first().ended() && !endOfConnection(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if lost := h.Lost(ctx); lost != nil {
		return lost
	}
	return err
}

// endOfConnection reports whether err may be what the end of a connection looks like from within. (x/crypto says
// "unexpected packet in response to channel open: <nil>" then.)
func endOfConnection(err error) bool {
	for _, end := range []error{errGone, errNoStatus, io.EOF, io.ErrClosedPipe, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET} {
		if errors.Is(err, end) {
			return true
		}
	}
	return strings.Contains(err.Error(), "unexpected packet in response to channel open: <nil>")
}

// Close closes all connections, and returns when their goroutines have ended.
func (h *host) Close() error {
	h.closing.Do(func() {
		h.shut()
		close(h.closed)
	})
	<-h.closed
	return nil
}

func (h *host) shut() {
	h.starts.stop()
	h.pool.close()
	h.starts.wait()
}
