package localbox

import (
	"context"
	"errors"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
)

// On Linux, /proc answers at once, so these methods ignore their ctx.
var (
	_ hostapi.Processes   = (*host)(nil)
	_ hostapi.ShellTeller = (*host)(nil)
)

// Tree implements hostapi.Processes.
func (h *host) Tree(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return procfs.Tree(pids...), nil
}

// Alive implements hostapi.Processes.
func (h *host) Alive(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return procfs.Alive(pids...), nil
}

// Marked implements hostapi.Processes.
func (h *host) Marked(ctx context.Context, word string) ([]int, error) {
	return procfs.Marked(word), nil
}

// Program implements hostapi.Processes.
func (h *host) Program(ctx context.Context, pid int) (dir string, env []string, err error) {
	dir, env = procfs.Program(pid)
	return dir, env, nil
}

// Look implements hostapi.Processes.
func (h *host) Look(ctx context.Context, p hostapi.Process) (proc.Look, error) {
	started, ok := p.(*process)
	if !ok || started.TTY() == 0 {
		return proc.Look{}, errNoTerminal
	}
	if started.Ended() { // another process may have its id
		return proc.Look{Gone: true}, nil
	}
	return procfs.Look(p.PID()), nil
}

// Shell implements hostapi.ShellTeller.
func (h *host) Shell(ctx context.Context, p hostapi.Process) (proc.Shell, error) {
	started, ok := p.(*process)
	switch {
	case !ok || started.TTY() == 0:
		return proc.Shell{}, errNoTerminal
	case started.Ended():
		return proc.Shell{}, nil
	}
	return procfs.Shell(p.PID()), nil
}

// discardLimit bounds Discard. It is reached only if the terminal cannot be opened and something is
// being typed on it.
const discardLimit = time.Second

// Discard implements hostapi.Processes.
func (h *host) Discard(ctx context.Context, p hostapi.Process) (int, error) {
	started, ok := p.(*process)
	if !ok || started.TTY() == 0 {
		return 0, errNoTerminal
	}
	return started.Discard(discardLimit, procfs.Discard), nil
}

var errNoTerminal = errors.New("the process has no terminal of this host")

// ResetModes implements hostapi.Processes.
func (h *host) ResetModes(ctx context.Context, tty int) error {
	procfs.ResetModes(tty)
	return nil
}

// Uptime implements hostapi.Processes.
func (h *host) Uptime(ctx context.Context) (time.Duration, error) { return procfs.Uptime() }

// Signal implements hostapi.Processes.
func (h *host) Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error) {
	return procfs.Signal(pids, signals...)
}

// Interrupt implements hostapi.Processes.
func (h *host) Interrupt(ctx context.Context, p hostapi.Process) (bool, error) {
	return procfs.Interrupt(p.PID()), nil
}

// settleLimit bounds Settle. A program that prints without end is never settled.
const settleLimit = 20 * time.Millisecond

// Settle implements hostapi.Processes. Input needs no wait, because a write to the terminal has
// passed it to the program.
func (h *host) Settle(ctx context.Context, p hostapi.Process) (busy bool, err error) {
	if p, ok := p.(*process); ok && p.Stderr() == nil {
		busy = p.Settle(settleLimit)
	}
	return busy, nil
}
