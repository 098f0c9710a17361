package shellbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// Detach closes the Box and leaves everything in it running, for another program to Attach to.
//
// What the methods of the Box have accepted reaches the host before: jobs and commands have begun,
// and input is on its way to their programs. Detach waits for that, also for a new connection if
// it is cut, but not longer than 10 s. If the time is over, Detach closes the Box all the same, and
// the error wraps context.DeadlineExceeded and names the sessions that have lost something.
//
// After any other error the Box stays open, and the error says why nothing would be left running.
// It is errors.ErrUnsupported if programs do not outlive the Host, and sandbox.ErrClosed after
// Close.
func (b *Box) Detach() error {
	if err := b.detach(); err != nil {
		return fmt.Errorf("detach from %s: %w", b, err)
	}
	if err := b.shutDown(); err != nil {
		return fmt.Errorf("detach from %s: %w", b, err)
	}
	return nil
}

// detach marks the box as closed, for the end that leaves it running.
func (b *Box) detach() error {
	keeper, ok := b.host.(hostapi.Keeper)
	if !ok || b.owner != nil {
		return fmt.Errorf("%w: what runs in it does not outlive it", errors.ErrUnsupported)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return sandbox.ErrClosed
	}
	if err := keeper.Detach(); err != nil {
		return err
	}
	b.closed, b.detached = true, true
	return nil
}

// handOverLimit bounds the wait until the host has what was accepted for its sessions.
const handOverLimit = 10 * time.Second

// handOver ends sessions for their callers, and leaves them running on the host. Until the host has
// what was accepted for a session, the session's calls work.
func (b *Box) handOver(sessions map[string]*session.Session) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), handOverLimit, fmt.Errorf(
		"the host has not got all that was typed or begun within %v: %w", handOverLimit,
		context.DeadlineExceeded))
	defer cancel()
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for _, s := range sessions {
		all.Go(func() {
			if err := s.HandOver(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: %w", s.ID(), err))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
