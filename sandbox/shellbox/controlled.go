package shellbox

import (
	"context"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/control"
)

// controlled implements Processes by the control shell, for a Host that does not.
type controlled struct{ *control.Processes }

var (
	_ hostapi.Processes   = (*controlled)(nil)
	_ hostapi.ShellTeller = (*controlled)(nil)
)

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

func (c *controlled) Look(ctx context.Context, p hostapi.Process) (proc.Look, error) {
	return c.Processes.Look(ctx, p.PID())
}

func (c *controlled) Shell(ctx context.Context, p hostapi.Process) (proc.Shell, error) {
	return c.Processes.Shell(ctx, p.PID())
}

func (c *controlled) Discard(ctx context.Context, p hostapi.Process) (int, error) {
	return c.Processes.Discard(ctx, p.PID())
}

func (c *controlled) Interrupt(ctx context.Context, p hostapi.Process) (bool, error) {
	return c.Processes.Interrupt(ctx, p.PID())
}

// Settle asks the process itself, if it is a SettledProcess. For others it does nothing: the rule
// that several looks must agree covers output on its way.
func (c *controlled) Settle(ctx context.Context, p hostapi.Process) (bool, error) {
	if p, ok := p.(hostapi.SettledProcess); ok {
		return p.Settle(ctx)
	}
	return false, nil
}
