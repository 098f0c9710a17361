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

// A held box is one that this process is connected to.
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

// release lets go of the box, which goes on.
func (h *held) release() { h.once.Do(func() { h.Detach() }) }

// A shared box is what Open returns. Its Close does nothing: the box is everybody's.
type shared struct{ place.Attached }

func (shared) Close() error { return nil }

// Detach does nothing either.
func (shared) Detach() error { return nil }

// Open returns the box as a Sandbox, attached. All callers in this process share it, its main
// session too; those who want a shell of their own open one. Its Close does nothing: Delete removes
// the box, and its calls return sandbox.ErrLost then, or sandbox.ErrClosed where this process had
// let go of it first. Open is ErrNotFound for a box that is not there, and ErrConflict for one that
// does not run.
//
// A box is attached to one process at a time: if several processes of the service Open it in turn,
// each takes it away from the other, whose calls return sandbox.ErrLost. Have the requests for one
// id come to one process.
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

// hold returns this process's connection to a box that runs. The caller has its turn.
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

// keep notes that this process is connected to a box.
func (s *Service) keep(id string, h *held) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[id] = h
	return h
}

// drop lets go of a box.
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

// connectedLimit is how long a connection that was cut may take to be there again, or to turn out
// to be lost, before it counts as none.
const connectedLimit = 200 * time.Millisecond

// connected reports whether this process is connected to a box, so that it knows all that goes on
// there. A box that another process has taken over it lets go of.
func (s *Service) connected(ctx context.Context, r *place.Record) bool {
	h := s.holding(r)
	if h == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, connectedLimit)
	defer cancel()
	err := h.Lost(ctx)
	if errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed) {
		s.letGo(r.ID, h)
	}
	return err == nil
}

// letGo lets go of a box, if that connection is still this process's.
func (s *Service) letGo(id string, h *held) {
	s.mu.Lock()
	if s.held[id] == h {
		delete(s.held, id)
	}
	s.mu.Unlock()
	h.release()
}

const (
	healthGrace = 15 * time.Second // how long after its start a box need not answer
	healthLimit = 2 * time.Second  // how long it may take to answer
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
		s.letGo(r.ID, h)
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
