package jupyter

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/guard"
)

// callbackDelay is how long Run waits for a caller's function after ctx has ended.
const callbackDelay = 2 * time.Second

// callback calls f, which calls a caller's function, and returns its error. If f has not returned
// callbackDelay after ctx has ended, callback returns without it, so that Run and Close do.
func callback(ctx context.Context, what string, f func() error) error {
	returned := guard.Go(what, f)
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(callbackDelay)
	defer late.Stop()
	select {
	case err := <-returned:
		return err
	case <-late.C:
		return fmt.Errorf("%w: %s has not returned %v later: %w", ctxerr.Of(ctx), what,
			callbackDelay, exec.ErrWaitDelay)
	}
}
