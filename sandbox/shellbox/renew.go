package shellbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/session"
)

// Settle waits until the host has what the methods of b have accepted: commands have begun, what
// was typed is there, and another program that attaches finds the sessions and jobs as they are. It
// is for hosts that can copy the place where b is with all that runs there. If such a copy is made
// while a call of b is under way, what that call sends may be in the copy or not.
func Settle(ctx context.Context, b *Box) error {
	if !b.shared.Keeps {
		return fmt.Errorf("%w: what runs in it does not outlive it", errors.ErrUnsupported)
	}
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	b.mu.Lock()
	var all []*session.Session
	for _, s := range b.sessions {
		all = append(all, s)
	}
	b.mu.Unlock()
	for _, s := range all {
		if err := s.Settle(ctx); err != nil {
			return ctxerr.Explain(ctx, fmt.Errorf("%s: %w", s.ID(), err))
		}
	}
	if !b.processes.Answers(ctx) { // all that was sent before the question is there with its answer
		return ctxerr.Explain(ctx, errors.New("the host does not answer"))
	}
	return nil
}

// Renew gives the sessions of b what they must not have in common with those of the box that b is a
// copy of: RANDOM gets another seed, and the variables env, "NAME=value", are set where neither a
// session's own options nor AddEnv have set them. A session whose command is unfinished gets that
// before its next command. Programs that run, jobs among them, have what they had.
func Renew(ctx context.Context, b *Box, env []string) error {
	ctx, done, err := b.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	var wait sync.WaitGroup
	sessions := b.Sessions()
	errs := make([]error, len(sessions))
	for i, s := range sessions {
		wait.Go(func() {
			if err := s.(*session.Session).Renew(ctx, env); err != nil {
				errs[i] = fmt.Errorf("%s: %w", s.ID(), err)
			}
		})
	}
	wait.Wait()
	return ctxerr.Explain(ctx, errors.Join(errs...))
}
