// Package ctxerr says why a context has ended.
//
// If a call ends because its caller's context has ended, its error wraps both ctx.Err() and the
// context's cause. This module also derives contexts of its own, and ends them at a limit or when a
// box is closed. The caller's context has not ended then, so the error is only the reason.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Of returns why ctx has ended, or nil if it has not.
func Of(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if ours, ok := cause.(ownCause); ok {
		return ours.error
	}
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// Explain returns the error of a call with ctx that has returned err. If ctx has ended, the error
// is that of Of, followed by the text of err. If err already wraps the reason, it is returned as it
// is.
func Explain(ctx context.Context, err error) error {
	why := Of(ctx)
	if err == nil || why == nil || alreadySays(ctx, err) {
		return err
	}
	return fmt.Errorf("%w (%v)", why, err)
}

func alreadySays(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	if ours, ok := cause.(ownCause); ok {
		return errors.Is(err, ours.error)
	}
	return errors.Is(err, ctx.Err()) && errors.Is(err, cause)
}

// An ownCause is the cause of a context that this module has ended.
type ownCause struct{ error }

func (o ownCause) Unwrap() error { return o.error }

// WithCancel returns a context that this module cancels. Of returns the error that it is cancelled
// with, without context.Canceled.
func WithCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, func(why error) {
		if why != nil {
			why = ownCause{why}
		}
		cancel(why)
	}
}

// WithLimit returns a context that ends after limit. Of then returns the error why, without
// context.DeadlineExceeded.
func WithLimit(
	ctx context.Context, limit time.Duration, why error,
) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, ownCause{why})
}
