package shellbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// Activity reports whether anything goes on in the box: an unfinished command (also one that waits
// for input), a job, a Run, a copy, an open connection of Dial. If nothing does, since is when the
// last of them ended, or when the Box was made. Activity does not look at what commands have left
// in the background.
func (b *Box) Activity() (busy bool, since time.Time) {
	b.mu.Lock()
	busy = b.calling.Load() > 0
	for conn := range b.conns {
		busy = busy || conn.noticed
	}
	sessions := make([]*session, 0, len(b.sessions))
	for _, s := range b.sessions {
		sessions = append(sessions, s)
	}
	b.mu.Unlock()
	for _, s := range sessions {
		s.mu.Lock()
		busy = busy || s.err == nil && s.cmd != nil // a job's command, too
		s.mu.Unlock()
	}
	return busy, time.Unix(0, b.touched.Load())
}

type unnoticed struct{}

// Unnoticed returns a context whose Runs, copies and connections do not count as Activity. It is
// for programs that watch the box.
func Unnoticed(ctx context.Context) context.Context {
	return context.WithValue(ctx, unnoticed{}, true)
}

func noticed(ctx context.Context) bool { return ctx.Value(unnoticed{}) == nil }

// touch records that something begins or ends.
func (b *Box) touch() { b.touched.Store(time.Now().UnixNano()) }

// Lost returns why the box is gone for this program, as a *sandbox.LostError or ErrClosed. It
// returns nil if the box is there. While the connection is cut, it waits for the outcome until ctx
// ends.
func (b *Box) Lost(ctx context.Context) error {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed {
		return sandbox.ErrClosed
	}
	return b.host.Lost(ctx)
}
