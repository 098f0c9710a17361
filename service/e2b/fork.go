package e2b

import (
	"errors"
	"net/http"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/service"
)

// fork makes copies of a box that runs: all or none, unlike E2B's. The copies have its files.
func (q *request) fork() error {
	var body e2b.Fork
	if _, err := q.body(&body); err != nil {
		return err
	}
	info, err := q.visible()
	if err != nil {
		return err
	}
	if info.Status != service.Running {
		return statusf(http.StatusConflict, "sandbox %q is %s and cannot be forked: resume it "+
			"first", info.ID, info.Status)
	}
	timeout, count := int64(defaultTimeout), 1
	if body.Timeout != nil {
		timeout = *body.Timeout
	}
	if body.Count != nil {
		count = *body.Count
	}
	ends, err := endAfter(timeout)
	if err != nil {
		return err
	}
	copies, err := q.config.Service.Fork(q.r.Context(), info.ID, count,
		service.ForkOptions{Ends: ends})
	var lost *sandbox.IncompleteError
	switch {
	case errors.As(err, &lost):
		return statusf(http.StatusConflict, "sandbox %q cannot be forked now: a fork would lack "+
			"what runs in it: %v: end it first", info.ID, lost.Lost)
	case errors.Is(err, sandbox.ErrBusy):
		return statusf(http.StatusConflict, "sandbox %q cannot be forked now: %v", info.ID, err)
	case err != nil:
		return err
	}
	forks := []e2b.Forked{}
	for _, c := range copies {
		its := q.sandbox(c)
		forks = append(forks, e2b.Forked{Sandbox: &its})
	}
	answerJSON(q.w, http.StatusCreated, forks)
	return nil
}
