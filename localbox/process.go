package localbox

import (
	"os"

	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A process is a shellbox.Process on this machine.
type process struct{ *programs.Process }

// start starts a program.
func start(p shellbox.Program) (*process, error) {
	account, err := programs.AccountOf(p.User, findAccount)
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
		// Command has added PWD. The list must not be nil, which stands for this program's own.
		cmd.Env = append([]string{}, p.Env...)
	}
	o := programs.Options{Joined: p.Joined}
	if t := p.Terminal; t != nil {
		o.Terminal, o.Commands, o.Rows, o.Cols = true, t.Commands, t.Rows, t.Cols
	}
	started, err := programs.Start(cmd, o)
	if err != nil {
		return nil, err
	}
	return &process{started}, nil
}

// Wait implements shellbox.Process.
func (p *process) Wait() (shellbox.Status, error) {
	code, signal, err := p.Process.Wait()
	return shellbox.Status{Code: code, Signal: signal}, err
}
