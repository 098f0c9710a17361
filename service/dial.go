package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

// dial dials an address in a running box, as Dial of the box that Open returns. If this process is
// connected to the box, the Place is not asked. If the box's programs have been started again since
// r was listed, the error is ErrConflict.
func (s *Service) dial(ctx context.Context, r *place.Record, network,
	address string) (net.Conn, error) {
	if c := s.connectionTo(r); c != nil {
		conn, err := s.dialRunning(ctx, c, r, network, address)
		if !errors.Is(err, sandbox.ErrLost) && !errors.Is(err, sandbox.ErrClosed) &&
			!errors.Is(err, ErrConflict) {
			return conn, err
		}
		s.known.forget(r.ID)
	}
	box, err := s.Open(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	now, err := s.find(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if now.Handle != r.Handle || now.Note == nil || now.Note.Generation != r.Note.Generation {
		return nil, fmt.Errorf("%w: its programs have been started again", ErrConflict)
	}
	return box.Dial(ctx, network, address)
}

// dialLook is how long a box may take to answer before dialRunning asks whether it still runs.
const dialLook = time.Second

// dialRunning dials an address in a box. A paused box does not answer. It may have been paused a
// moment ago, before this process has heard of it: then the error is ErrConflict.
func (s *Service) dialRunning(ctx context.Context, c *connection, r *place.Record, network,
	address string) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	look := time.AfterFunc(dialLook, func() {
		if !s.stillRuns(ctx, r) {
			cancel(ErrConflict)
		}
	})
	defer look.Stop()
	conn, err := c.Dial(ctx, network, address)
	if err != nil && errors.Is(context.Cause(ctx), ErrConflict) {
		return nil, ErrConflict
	}
	return conn, err
}

// stillRuns reports whether a box runs, or may run.
func (s *Service) stillRuns(ctx context.Context, r *place.Record) bool {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return true
	}
	defer func() { done(&err) }()
	now, err := s.askRecord(ctx, r.ID)
	if err != nil {
		return !errors.Is(err, ErrNotFound)
	}
	return now.Status == Running && now.Handle == r.Handle
}
