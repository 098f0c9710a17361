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
	account, err := program.AccountOf(p.User, findAccount)
	if err != nil {
		return nil, err
	}
	env := p.Env
	if !p.ReplaceEnv {
		env = append(account.Environ(os.Environ()), env...)
	}
	cmd, err := account.Command(p.Args, p.Dir, env)
	if err != nil {
		return nil, err
	}
	if p.ReplaceEnv {
		cmd.Env = append([]string{}, p.Env...) // without PWD; nil would be this program's
	}
	started, err := startCommand(cmd, p)
	if err != nil {
		return nil, err
	}
	return &process{started}, nil
}

func startCommand(cmd *exec.Cmd, p shellbox.Program) (*program.Process, error) {
	t := p.Terminal
	switch {
	case t == nil && p.Joined:
		return program.StartJoined(cmd)
	case t == nil:
		return program.Start(cmd)
	case t.Commands:
		return program.StartShell(cmd, t.Rows, t.Cols)
	}
	return program.StartOnTerminal(cmd, t.Rows, t.Cols)
}

// Wait implements shellbox.Process.
func (p *process) Wait() (shellbox.Status, error) {
	code, signal, err := p.Process.Wait()
	return shellbox.Status{Code: code, Signal: signal}, err
}
