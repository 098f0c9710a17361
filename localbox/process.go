package localbox

import (
	"os"
	"os/exec"

	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/program"
)

// A process is one of this machine.
type process struct{ *program.Process }

// start starts a program.
func start(p shellbox.Program) (*process, error) {
	cmd, err := program.Command(p.Args, p.Dir, append(os.Environ(), p.Env...))
	if err != nil {
		return nil, err
	}
	started, err := startCommand(cmd, p.Terminal)
	if err != nil {
		return nil, err
	}
	return &process{started}, nil
}

func startCommand(cmd *exec.Cmd, t *shellbox.Terminal) (*program.Process, error) {
	if t == nil {
		return program.Start(cmd)
	}
	return program.StartOnTerminal(cmd, t.Rows, t.Cols)
}

// Wait implements shellbox.Process.
func (p *process) Wait() (shellbox.Status, error) {
	code, signal, err := p.Process.Wait()
	return shellbox.Status{Code: code, Signal: signal}, err
}
