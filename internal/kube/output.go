package kube

import (
	"context"
	"fmt"

	"github.com/sandshell/sandshell/internal/bounded"
	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/printable"
)

// outputMax bounds the output of a command, in bytes.
const outputMax = 64 << 10

// Output executes a command in a pod's container and returns its standard output. boxd takes no
// part in it.
func (c *Cluster) Output(ctx context.Context, pod string, command ...string) ([]byte, error) {
	s, err := c.exec(ctx, pod, command)
	if err != nil {
		return nil, c.Explain(err, "exec", "pods", pod)
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	out, err := bounded.ReadAll(s, "the output of "+command[0], outputMax)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctxerr.Of(ctx)
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, printable.Text(s.Said()))
	}
	return out, nil
}
