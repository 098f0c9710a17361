package jupyter

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
)

// A request was sent to the kernel. It collects the messages about it.
type request struct {
	ids   []string
	ready chan struct{} // full if there are messages

	// Under connection.mu:
	messages  []*message
	size      int64 // bytes of messages
	omitted   int64 // bytes of output that were dropped
	abandoned bool
}

// enqueueLocked adds a message. The kernel does not wait for slow readers, so output beyond
// pendingMax is dropped. An honest kernel does not send pendingMax of other messages, so more of
// them are an error.
func (r *request) enqueueLocked(m *message) error {
	if r.abandoned {
		return nil
	}
	most := int64(2 * pendingMax)
	if m.channel == iopub && m.isOutput() {
		most = pendingMax
	}
	if r.size+m.size > most {
		if most > pendingMax {
			return &bounded.TooLargeError{What: "what the kernel says about a request", Max: most}
		}
		r.omitted += m.size
		return nil
	}
	r.size += m.size + messageCost
	r.messages = append(r.messages, m)
	select {
	case r.ready <- struct{}{}:
	default:
	}
	return nil
}

// pendingMax is how many bytes of a cell's output may wait for Stream's function. messageCost is
// the memory of a message beside its frames.
const (
	pendingMax  = 5 << 20
	messageCost = 1024
)

// isOutput reports whether m is output, which may be dropped.
func (m *message) isOutput() bool {
	switch m.header.Type {
	case "stream", "display_data", "execute_result", "update_display_data":
		return true
	}
	return m.omitted > 0
}

// nextMessage waits for the next message about r and returns it. It returns nil if late fires
// first.
func (c *connection) nextMessage(ctx context.Context, r *request,
	late <-chan time.Time) (*message, error) {
	for {
		// A cell that never stops printing always has a message, so ctx comes first.
		if err := ctxerr.Of(ctx); err != nil {
			return nil, err
		}
		c.mu.Lock()
		if len(r.messages) > 0 {
			m := r.messages[0]
			r.messages = r.messages[1:]
			r.size -= m.size + messageCost
			c.mu.Unlock()
			return m, nil
		}
		c.mu.Unlock()
		select {
		case <-r.ready:
			continue
		default:
		}
		select {
		case <-r.ready:
		case <-late:
			return nil, nil
		case <-ctx.Done():
			return nil, ctxerr.Of(ctx)
		case <-c.gone:
			select {
			case <-r.ready: // a message that arrived before the end
				continue
			default:
			}
			return nil, c.goneErr()
		}
	}
}
