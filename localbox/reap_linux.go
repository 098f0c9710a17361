package localbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/procfs"
)

// endMarked ends all processes with that mark in their environment, and their descendants. They
// have 100 ms to end after SIGTERM.
func endMarked(ctx context.Context, mark string) error {
	return procfs.EndMarked(ctx, mark, 100*time.Millisecond)
}
