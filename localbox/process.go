package localbox

import (
	"os"
	"strconv"

	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/program"
)

// A process is one of this machine.
type process struct {
	*program.Process
	closed func() // called by each Close
}

// start starts a program.
func (h *host) start(p shellbox.Program) (*process, error) {
	cmd, err := program.Command(p.Args, p.Dir, append(os.Environ(), p.Env...))
	if err != nil {
		return nil, err
	}
	if p.Terminal == nil {
		started, err := program.Start(cmd)
		if err != nil {
			return nil, err
		}
		return &process{started, func() {}}, nil
	}
	started, err := program.StartOnTerminal(cmd, p.Terminal.Rows, p.Terminal.Cols)
	if err != nil {
		return nil, err
	}
	id := strconv.Itoa(started.PID())
	proc := &process{started, nil}
	h.terminals.Store(id, proc)
	proc.closed = func() { h.terminals.CompareAndDelete(id, proc) }
	return proc, nil
}

func (p *process) Wait() (shellbox.Status, error) {
	code, signal, err := p.Process.Wait()
	return shellbox.Status{Code: code, Signal: signal}, err
}

func (p *process) Close() error {
	p.closed()
	return p.Process.Close()
}
