package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/service/place"
)

// A held is a box that this process is connected to.
type held struct {
	place.Attached
	handle string
	pooled bool // it has no ID yet
	once   sync.Once
	client *http.Client // for the health check
}

func newHeld(box place.Attached, handle string) *held {
	h := &held{Attached: box, handle: handle}
	h.client = &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return box.Dial(shellbox.Unnoticed(ctx), network, address)
			}},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return h
}

// release disconnects from the box, which goes on.
func (h *held) release() { h.once.Do(func() { h.Detach() }) }

// A shared is the box that Open returns. Its Close does nothing, because all callers share the box.
type shared struct{ place.Attached }

func (shared) Close() error { return nil }

// Detach does nothing, as Close does.
func (shared) Detach() error { return nil }

// Open connects to a running box and returns it. The error is ErrNotFound if there is no such box,
// and ErrConflict if it does not run.
//
// All callers in this process share the box and its main session. To get a shell of its own, a
// caller opens a session. Close of the returned Sandbox does nothing. After Delete, its calls
// return sandbox.ErrLost, or sandbox.ErrClosed if this process had disconnected before.
//
// A box is attached to one process at a time. If several processes Open it in turn, each takes it
// away from the one before, whose calls return sandbox.ErrLost. So send all requests for one id to
// one process.
func (s *Service) Open(ctx context.Context, id string) (_ sandbox.Sandbox, err error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { done(&err) }()
	var h *held
	err = s.inTurn(ctx, id, func(r *place.Record) (err error) {
		if r.Status != Running {
			return fmt.Errorf("%w: it is %s: Resume it first", ErrConflict, r.Status)
		}
		h, err = s.hold(ctx, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open box %q: %w", id, err)
	}
	return shared{h.Attached}, nil
}

// hold returns this process's connection to a running box, and connects if there is none. The
// caller has the turn of the box.
func (s *Service) hold(ctx context.Context, r *place.Record) (*held, error) {
	s.mu.Lock()
	h := s.held[r.ID]
	s.mu.Unlock()
	if h != nil && h.handle == r.Handle {
		err := h.Lost(ctx)
		if err == nil {
			return h, nil
		}
		if ctx.Err() != nil {
			return nil, ctxerr.Of(ctx)
		}
	}
	s.drop(r.ID)
	box, err := s.place.Attach(ctx, r.Handle)
	if err != nil {
		return nil, err
	}
	return s.keep(r.ID, newHeld(box, r.Handle)), nil
}

// keep records that this process is connected to a box.
func (s *Service) keep(id string, h *held) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[id] = h
	return h
}

// drop disconnects from a box.
func (s *Service) drop(id string) {
	s.mu.Lock()
	h := s.held[id]
	delete(s.held, id)
	s.mu.Unlock()
	if h != nil {
		h.release()
	}
}

// holding returns this process's connection to a box; nil if there is none.
func (s *Service) holding(r *place.Record) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[r.ID]; h != nil && h.handle == r.Handle {
		return h
	}
	return nil
}

// connectedLimit is how long connected waits for a connection that was cut: until it is there again
// or is known to be lost.
const connectedLimit = 200 * time.Millisecond

// connected reports whether this process is connected to a box, and so knows all that goes on
// there. If another process has taken the box over, connected disconnects from it.
func (s *Service) connected(ctx context.Context, r *place.Record) bool {
	h := s.holding(r)
	if h == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, connectedLimit)
	defer cancel()
	err := h.Lost(ctx)
	if errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed) {
		s.dropIf(r.ID, h)
	}
	return err == nil
}

// dropIf disconnects from a box, if h is still this process's connection to it.
func (s *Service) dropIf(id string, h *held) {
	s.mu.Lock()
	if s.held[id] == h {
		delete(s.held, id)
	}
	s.mu.Unlock()
	h.release()
}

const (
	healthGrace = 15 * time.Second // how long after its start a box need not serve
	healthLimit = 2 * time.Second  // how long an answer may take
)

// health asks a running box whether it serves, if this process is connected to it.
func (s *Service) health(ctx context.Context, r *place.Record, spec *Spec) (Status, string) {
	h := s.holding(r)
	if spec.Health == nil || h == nil {
		return Running, ""
	}
	err := h.healthy(ctx, spec.Health)
	switch {
	case err == nil, ctx.Err() != nil:
		return Running, ""
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrClosed):
		// another process has it now
		s.dropIf(r.ID, h)
		return Running, ""
	case time.Since(r.Note.Started) < healthGrace:
		return Starting, "it does not serve yet: " + err.Error()
	}
	return Error, "it does not serve: " + err.Error()
}

func (h *held) healthy(ctx context.Context, check *Health) error {
	ctx, cancel := ctxerr.WithLimit(ctx, healthLimit,
		fmt.Errorf("no answer within %v", healthLimit))
	defer cancel()
	path := check.Path
	if path == "" {
		path = "/"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(check.Port))+path, nil)
	if err != nil {
		return err
	}
	answer, err := h.client.Do(request)
	if err != nil {
		if cause := ctxerr.Of(ctx); cause != nil {
			err = cause
		}
		return err
	}
	defer answer.Body.Close()
	io.CopyN(io.Discard, answer.Body, 1<<10)
	if answer.StatusCode >= 400 {
		return errors.New(answer.Status)
	}
	return nil
}
