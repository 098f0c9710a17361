package shellbox

import (
	"context"

	"github.com/sandshell/sandshell/sandbox/shellbox/internal/control"
	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// controlled are the Processes of a Host that has none: what a plain sh beside the sessions tells.
type controlled struct{ *control.Processes }

var _ Processes = (*controlled)(nil)

func newControlled(host Host) *controlled {
	return &controlled{control.New(func(ctx context.Context) (control.Shell, error) {
		p, err := host.Start(ctx, Program{Args: []string{"sh"}, Dir: "/"})
		if err != nil {
			return nil, err
		}
		return controlShell{p}, nil
	})}
}

type controlShell struct{ Process }

func (c controlShell) Reap() { c.Wait() }

func (c *controlled) Look(ctx context.Context, p Process) (proc.Look, error) {
	return c.Processes.Look(ctx, p.PID())
}

func (c *controlled) Discard(ctx context.Context, p Process) (int, error) {
	return c.Processes.Discard(ctx, p.PID())
}

func (c *controlled) Interrupt(ctx context.Context, p Process) (bool, error) {
	return c.Processes.Interrupt(ctx, p.PID())
}

// Settle asks the process itself, if it can tell. Else only the rule that several looks have to
// agree covers what is on its way.
func (c *controlled) Settle(ctx context.Context, p Process) (bool, error) {
	if p, ok := p.(SettledProcess); ok {
		return p.Settle(ctx)
	}
	return false, nil
}
