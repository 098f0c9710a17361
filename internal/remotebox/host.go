package remotebox

import (
	"context"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/client"
)

// A Place is what a box's boxd runs in, and what is removed with the box: a container or a pod.
type Place interface {
	client.Place
	// Remove removes the place and waits until it is gone. It does not end with ctx.
	Remove(ctx context.Context) error
}

// A Host is a Place with boxd as a shellbox.Host, and all that ends with it.
type Host struct {
	*client.Host
	SSHConfig SSHConfig
	place     Place
	stop      func()
	release   func()

	closing sync.Once
	closed  error // what Close returns
}

// NewHost returns the Host of a connection to the boxd of a place. Close calls stop first and
// release last.
func NewHost(h *client.Host, place Place, stop, release func()) *Host {
	return &Host{Host: h, place: place, stop: stop, release: release}
}

// ownsLimit bounds the question whether the box is still this program's.
const ownsLimit = 2 * time.Second

// Close ends the connection, removes the place and waits until it is gone. It leaves the place
// alone if Abandon or Detach has been called, or if the box belongs to another program.
func (h *Host) Close() error {
	h.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), ownsLimit)
		owns := h.Owns(ctx)
		cancel()
		h.stop()
		h.SSHConfig.Close()
		h.closed = h.Host.Close()
		if owns {
			h.closed = h.place.Remove(context.Background())
		}
		h.release()
	})
	return h.closed
}
