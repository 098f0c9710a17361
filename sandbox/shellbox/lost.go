package shellbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// Lost returns why the box is gone for this program, as a *sandbox.LostError or ErrClosed. It
// returns nil if the box is there. While the connection is cut, it waits for the outcome until ctx
// ends.
func (b *Box) Lost(ctx context.Context) error {
	if b.isClosed() {
		return sandbox.ErrClosed
	}
	return b.host.Lost(ctx)
}

const (
	// lostSoon is how long a failed call waits for the reason that the host is gone.
	lostSoon = 5 * time.Second
	// silence bounds the time that a host takes to find out that its connection has gone silent.
	silence = 8 * time.Second
)

// lostOr returns why the host is gone. If the host is there, or does not answer soon, it returns
// err.
func (b *Box) lostOr(err error) error { return b.lostWithin(lostSoon, err) }

func (b *Box) lostWithin(limit time.Duration, err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if why := b.host.Lost(ctx); why != nil {
		return why
	}
	return err
}
