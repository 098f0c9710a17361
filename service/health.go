package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service/place"
)

const (
	healthGrace = 15 * time.Second // after a start; a box that does not serve is Starting so long
	healthLimit = 2 * time.Second  // for an answer
)

// health returns the Status of a running box, with the reason. It asks the box whether it serves,
// if the spec has a Health and this process is connected to the box.
func (s *Service) health(ctx context.Context, r *place.Record, spec *Spec) (Status, string) {
	c := s.connectionTo(r)
	if spec.Health == nil || c == nil {
		return Running, ""
	}
	err := c.checkHealth(ctx, spec.Health)
	switch {
	case err == nil, ctx.Err() != nil:
		return Running, ""
	case errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrClosed):
		// The box is gone, or its programs have been started again.
		s.dropConnection(r.ID, c)
		return Running, ""
	case time.Since(r.Note.Started) < healthGrace:
		return Starting, "it does not serve yet: " + err.Error()
	}
	return Error, "it does not serve: " + err.Error()
}

func (c *connection) checkHealth(ctx context.Context, check *Health) error {
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
	answer, err := c.client.Do(request)
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
