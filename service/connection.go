package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// A connection is a box that this process is connected to.
type connection struct {
	place.Attached
	*wayOut
	handle string
	pooled bool // it has no ID yet
	once   sync.Once
	client *http.Client // for the health check
}

func newConnection(box place.Attached, handle string) *connection {
	c := &connection{Attached: box, wayOut: newWayOut(), handle: handle}
	c.client = &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return box.Dial(hostapi.Unnoticed(ctx), network, address)
			}},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return c
}

// release disconnects from the box, which goes on.
func (c *connection) release() {
	c.once.Do(func() {
		var both sync.WaitGroup
		both.Go(c.leave) // at once, because a paused box answers neither
		c.Detach()
		both.Wait()
	})
}

// A shared is the box that Open returns. Its Close does nothing, because all callers share the box.
type shared struct{ place.Attached }

func (shared) Close() error { return nil }

// Detach does nothing either.
func (shared) Detach() error { return nil }

// Open connects to a running box and returns it. It resumes a paused box that has
// StartOptions.WakeFor, or whose spec's Lifecycle has Wake. The error is ErrNotFound if there is no
// such box, and ErrConflict if it does not run.
//
// All callers in this process share the box and its main session. To get a shell of its own, a
// caller opens a session. Close of the returned Sandbox does nothing. After Delete, its calls
// return sandbox.ErrLost, or sandbox.ErrClosed if this process had disconnected before.
//
// Up to 16 processes may Open a box at once. They share its sessions and jobs by their ids, and the
// main session too. One process at a time uses a session: while its call is under way, calls of
// others return sandbox.ErrBusy. If a process is killed, its unfinished commands go on, and Wait of
// another process returns their results.
func (s *Service) Open(ctx context.Context, id string) (box sandbox.Sandbox, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	var c *connection
	err = s.inTurn(ctx, id, func(r *place.Record) (err error) {
		if err := s.wake(ctx, r); err != nil {
			return err
		}
		c, err = s.connect(ctx, r)
		return err
	})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("open box %q: %w: Start makes one", id, err)
	case err != nil:
		return nil, fmt.Errorf("open box %q: %w", id, err)
	}
	return shared{c.Attached}, nil
}

// openKnown is Open, but the error is ErrNotFound if may returns false. If the box is known to run
// and this process is connected to it, the Place is not asked.
func (s *Service) openKnown(ctx context.Context, id string,
	may func(*place.Record) bool) (_ sandbox.Sandbox, err error) {
	its, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	r, err := s.runningRecord(its, id)
	if err == nil && !may(r) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("box %q: %w", id, err)
	}
	if c := s.connectionTo(r); c != nil && r.Status == Running && !isOver(r) &&
		c.Lost(its) == nil {
		return shared{c.Attached}, nil
	}
	return s.Open(ctx, id)
}

// wake resumes a paused box if its note has WakeFor or its spec's Lifecycle has Wake. If the box
// does not run then, the error is ErrConflict. The caller has the turn of the box.
func (s *Service) wake(ctx context.Context, r *place.Record) error {
	if r.Status == Running {
		return nil
	}
	if r.Status == Paused {
		spec, err := s.specOf(ctx, r)
		switch {
		case err != nil:
			return err
		case r.Note.WakeFor > 0:
			return s.resumeUntil(ctx, r, time.Now().Add(r.Note.WakeFor))
		case wakes(r, spec):
			return s.resume(ctx, r)
		}
	}
	return fmt.Errorf("%w: it is %s: Resume it first", ErrConflict, r.Status)
}

// wakes reports whether a paused box is resumed when somebody uses it. spec is nil if it is gone.
func wakes(r *place.Record, spec *Spec) bool {
	return r.Note.WakeFor > 0 || spec != nil && spec.Lifecycle.Wake
}

// connect returns this process's connection to a running box, and connects if there is none. It
// serves the box's way out, unless another process does. The caller has the turn of the box.
func (s *Service) connect(ctx context.Context, r *place.Record) (*connection, error) {
	c, err := s.join(ctx, r)
	if err == nil {
		s.keepServing(ctx, c, r)
	}
	return c, err
}

// join is connect, but for the way out.
func (s *Service) join(ctx context.Context, r *place.Record) (*connection, error) {
	s.mu.Lock()
	c := s.connections[r.ID]
	s.mu.Unlock()
	if c != nil && c.handle == r.Handle {
		err := c.Lost(ctx)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
	}
	s.disconnect(r.ID)
	box, err := s.place.Attach(ctx, r.Handle)
	if err != nil {
		return nil, err
	}
	return s.setConnection(r.ID, newConnection(box, r.Handle)), nil
}

// setConnection records that this process is connected to a box.
func (s *Service) setConnection(id string, c *connection) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections[id] = c
	return c
}

// disconnect disconnects from a box.
func (s *Service) disconnect(id string) {
	s.mu.Lock()
	c := s.connections[id]
	delete(s.connections, id)
	s.mu.Unlock()
	if c != nil {
		c.release()
	}
}

// connectionTo returns this process's connection to a box. It returns nil if there is none.
func (s *Service) connectionTo(r *place.Record) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.connections[r.ID]; c != nil && c.handle == r.Handle {
		return c
	}
	return nil
}

// connectedLimit bounds how long checkConnection waits while a connection that was cut is being
// restored.
const connectedLimit = 200 * time.Millisecond

// checkConnection reports whether this process alone is connected to a box, and so knows all that
// goes on there. If the connection is lost, because the box's programs have been started again for
// example, checkConnection disconnects from the box.
func (s *Service) checkConnection(ctx context.Context, r *place.Record) bool {
	c := s.connectionTo(r)
	if c == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, connectedLimit)
	defer cancel()
	err := c.Lost(ctx)
	if errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed) {
		s.dropConnection(r.ID, c)
	}
	others, ok := c.Attached.(interface{ Shared() bool })
	return err == nil && !(ok && others.Shared())
}

// dropConnection disconnects from a box, if c is still this process's connection to it.
func (s *Service) dropConnection(id string, c *connection) {
	s.mu.Lock()
	if s.connections[id] == c {
		delete(s.connections, id)
	}
	s.mu.Unlock()
	c.release()
}
