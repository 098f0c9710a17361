package sshbox

import (
	"context"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
)

// callback calls a function of the user's; what is its name for errors. If ctx ends first, callback
// returns at once, and late gets the value if f returns one later. A panic of f is an error.
func callback[T any](
	ctx context.Context, what string, f func() (T, error), late func(T),
) (T, error) {
	var value T
	ended := guard.Go(what, func() (err error) {
		value, err = f()
		return err
	})
	select {
	case err := <-ended:
		return value, err
	case <-ctx.Done():
	}
	if late != nil {
		go func() {
			if <-ended == nil {
				late(value)
			}
		}()
	}
	var none T
	return none, ctxerr.Of(ctx)
}
