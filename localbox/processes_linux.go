package localbox

import (
	"context"
	"time"

	"github.com/sandshell/sandshell/internal/inspect"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// On Linux nothing has to be started to learn about processes. No answer takes so long that it would have to heed a context.
var _ shellbox.Processes = (*host)(nil)

// Tree implements shellbox.Processes.
func (h *host) Tree(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return inspect.Tree(pids...), nil
}

// Alive implements shellbox.Processes.
func (h *host) Alive(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return inspect.Alive(pids...), nil
}

// Marked implements shellbox.Processes.
func (h *host) Marked(ctx context.Context, word string) ([]int, error) {
	return inspect.Marked(word), nil
}

// Modes implements shellbox.Processes.
func (h *host) Modes(ctx context.Context, tty int) (proc.Modes, error) {
	return inspect.Modes(tty), nil
}

// ResetModes implements shellbox.Processes.
func (h *host) ResetModes(ctx context.Context, tty int) error {
	inspect.ResetModes(tty)
	return nil
}

// Uptime implements shellbox.Processes.
func (h *host) Uptime(ctx context.Context) (time.Duration, error) { return inspect.Uptime() }

// Signal implements shellbox.Processes.
func (h *host) Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error) {
	return inspect.Signal(pids, signals...)
}

// settleLimit bounds Settle. A program that prints without end is never settled.
const settleLimit = 20 * time.Millisecond

// Settle implements shellbox.Processes. Input needs no wait: a write to the terminal has given it to the program.
func (h *host) Settle(ctx context.Context, p shellbox.Process) error {
	if p, ok := p.(*process); ok && p.Stderr() == nil {
		p.Settle(settleLimit)
	}
	return nil
}
