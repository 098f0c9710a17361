// Package ctxerr says why a context has ended.
//
// A call that ends because its caller's context has ended returns an error that is ctx.Err(), so
// that errors.Is works, and that holds the context's cause too. A context may also have been ended
// by this module: by a limit of ours, or because a box was closed. Then the caller's context goes
// on, and the error is the reason alone.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Of returns why ctx has ended, and nil while it goes on.
func Of(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if ours, ok := cause.(ours); ok {
		return ours.error
	}
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Explain returns err, of a call with ctx. If ctx has ended, the error says why, and err after it
// where err does not say so itself.
func Explain(ctx context.Context, err error) error {
	why := Of(ctx)
	if err == nil || why == nil || says(ctx, err) {
		return err
	}
	return fmt.Errorf("%w (%v)", why, err)
}

func says(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	if ours, ok := cause.(ours); ok {
		return errors.Is(err, ours.error)
	}
	return errors.Is(err, ctx.Err()) && errors.Is(err, cause)
}

// ours is a cause that this module gave to a context of its own.
type ours struct{ error }

func (o ours) Unwrap() error { return o.error }

// WithCancel returns a context of ours. Of returns the error that it is cancelled with, without
// context.Canceled.
func WithCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, func(why error) {
		if why != nil {
			why = ours{why}
		}
		cancel(why)
	}
}

// WithLimit returns a context that ends after limit. Of returns why then, without
// context.DeadlineExceeded.
func WithLimit(
	ctx context.Context, limit time.Duration, why error,
) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, ours{why})
}
