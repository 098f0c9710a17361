package localbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
)

// reapLimit is how long processes may take to end after SIGKILL: one that is in the kernel ends
// later, or never.
const reapLimit = 5 * time.Second

// endMarked ends all processes with that mark in their environment, and what descends from them.
func endMarked(ctx context.Context, mark string) error {
	signals := []proc.Signal{proc.SIGHUP, proc.SIGTERM, proc.SIGCONT}
	var left []proc.Process
	for begin := time.Now(); ; {
		left = procfs.MarkedTree(mark, left)
		if len(left) == 0 {
			return nil
		}
		if time.Since(begin) > reapLimit {
			return fmt.Errorf("%d processes survive SIGKILL, the first is %d", len(left),
				left[0].PID)
		}
		var pids []int
		for _, p := range left {
			pids = append(pids, p.PID)
		}
		if _, err := procfs.Signal(pids, signals...); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("processes may be left"), ctxerr.Of(ctx))
		case <-time.After(100 * time.Millisecond): // to end softly
		}
		signals = []proc.Signal{proc.SIGKILL}
	}
}
