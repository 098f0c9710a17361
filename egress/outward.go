package egress

import (
	"context"
	"errors"
	"net"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
)

// listenOutward returns the listener of what a box's programs connect to outside. It is nil if the
// box was not made for that.
func listenOutward(ctx context.Context, box sandbox.Sandbox) (net.Listener, error) {
	l, err := box.Listen(ctx, hostapi.OutwardNetwork, "")
	var unknown net.UnknownNetworkError
	if errors.Is(err, errors.ErrUnsupported) || errors.As(err, &unknown) {
		return nil, nil
	}
	return l, err
}

// serveOutward serves connections to the outside until the listener's Accept fails.
func (x *Exit) serveOutward(l net.Listener) {
	_ = x.serveEach(l, func(c *conn) {
		leaving, ok := c.RemoteAddr().(hostapi.Leaving)
		d := dest{via: "outward", program: leaving.Program, pid: leaving.Process,
			session: leaving.Session}
		var err error
		if d.host, d.port, err = splitHostPort(leaving.To, 0); !ok || err != nil {
			x.refuse(c, d, "the box does not say where it is for", c.reset)
			return
		}
		x.tunnel(c, d, func(why string) {
			if why != "" {
				c.reset()
			}
		})
	})
}

// reset closes the connection so that the program reads an error, and not the end.
func (c *conn) reset() {
	if r, ok := c.Conn.(hostapi.Resetter); ok {
		r.Reset()
	}
	_ = c.Close()
}
