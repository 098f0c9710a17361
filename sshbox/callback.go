package sshbox

import (
	"context"
	"fmt"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
)

// callback calls a caller's function, whose name is what. If ctx ends before it has returned,
// callback returns without it, and late gets the value if there ever is one. A panic is an error.
func callback[T any](
	ctx context.Context, what string, f func() (T, error), late func(T),
) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer)
	go func() {
		a := answer{err: fmt.Errorf("%s has ended its goroutine", what)} // by runtime.Goexit
		defer func() {
			select {
			case answers <- a:
			case <-ctx.Done():
				if a.err == nil && late != nil {
					late(a.value)
				}
			}
		}()
		a.err = guard.Call(what, func() (err error) {
			a.value, err = f()
			return err
		})
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctxerr.Of(ctx)
	}
}
