package localbox

import (
	"context"
	"errors"
	"time"

	"github.com/sandshell/sandshell/internal/procfs"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// On Linux nothing has to be started to learn about processes. No answer takes so long that it
// would have to heed a context.
var _ shellbox.Processes = (*host)(nil)

// Tree implements shellbox.Processes.
func (h *host) Tree(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return procfs.Tree(pids...), nil
}

// Alive implements shellbox.Processes.
func (h *host) Alive(ctx context.Context, pids ...int) ([]proc.Process, error) {
	return procfs.Alive(pids...), nil
}

// Marked implements shellbox.Processes.
func (h *host) Marked(ctx context.Context, word string) ([]int, error) {
	return procfs.Marked(word), nil
}

// Program implements shellbox.Processes.
func (h *host) Program(ctx context.Context, pid int) (dir string, env []string, err error) {
	dir, env = procfs.Program(pid)
	return dir, env, nil
}

// Look implements shellbox.Processes.
func (h *host) Look(ctx context.Context, p shellbox.Process) (proc.Look, error) {
	started, ok := p.(*process)
	if !ok || started.TTY() == 0 {
		return proc.Look{}, errNoTerminal
	}
	if started.Ended() { // its id may be another's
		return proc.Look{Gone: true}, nil
	}
	return procfs.Look(p.PID()), nil
}

// discardLimit bounds Discard. It is reached only if the terminal cannot be opened and something is
// being typed on it.
const discardLimit = time.Second

// Discard implements shellbox.Processes.
func (h *host) Discard(ctx context.Context, p shellbox.Process) (int, error) {
	started, ok := p.(*process)
	if !ok || started.TTY() == 0 {
		return 0, errNoTerminal
	}
	return started.Discard(discardLimit, procfs.Discard), nil
}

var errNoTerminal = errors.New("the process is none of this host's on a terminal")

// ResetModes implements shellbox.Processes.
func (h *host) ResetModes(ctx context.Context, tty int) error {
	procfs.ResetModes(tty)
	return nil
}

// Uptime implements shellbox.Processes.
func (h *host) Uptime(ctx context.Context) (time.Duration, error) { return procfs.Uptime() }

// Signal implements shellbox.Processes.
func (h *host) Signal(ctx context.Context, pids []int, signals ...proc.Signal) (int, error) {
	return procfs.Signal(pids, signals...)
}

// Interrupt implements shellbox.Processes.
func (h *host) Interrupt(ctx context.Context, p shellbox.Process) (bool, error) {
	return procfs.Interrupt(p.PID()), nil
}

// settleLimit bounds Settle. A program that prints without end is never settled.
const settleLimit = 20 * time.Millisecond

// Settle implements shellbox.Processes. Input needs no wait: a write to the terminal has given it
// to the program.
func (h *host) Settle(ctx context.Context, p shellbox.Process) (busy bool, err error) {
	if p, ok := p.(*process); ok && p.Stderr() == nil {
		busy = p.Settle(settleLimit)
	}
	return busy, nil
}
