// Package program is for a shellbox.Host that starts programs with os/exec on this machine, be it
// in a chroot, as another user, or through a tool such as bwrap.
//
// [Command] makes the exec.Cmd of a shellbox.Program. The Host may change it. [Start] starts it: on
// pipes, or on a terminal. The example of package shellbox is such a Host. One whose terminals are
// at the other end of a connection needs a [Keyboard]. One that listens on this machine wraps its
// listeners with [Listener].
//
// The package works on Linux, macOS and the BSDs. On other systems the error is
// errors.ErrUnsupported.
package program

import (
	"io"
	"net"
	"os"
	"os/exec"

	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// Command returns the exec.Cmd of p. Its environment is p.Env, added to this program's own unless
// p.ReplaceEnv is set. The program is looked up in the PATH of that environment, and PWD is set if
// p.Dir is not "". Users are those of /etc/passwd.
//
// The errors are those of [shellbox.Host]'s Start. If p has no Args, the error is os.ErrInvalid.
func Command(p shellbox.Program) (*exec.Cmd, error) {
	account, err := programs.AccountOf(p.User, programs.ReadAccount)
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
		cmd.Env = append([]string{}, p.Env...) // without PWD; nil would mean this program's own
	}
	return cmd, nil
}

// Start starts cmd as p wants it: on three pipes, on a new terminal, or as a shell on a terminal
// with a pipe for its commands. Of p it uses Terminal and Joined; of cmd, Path, Args, Env, Dir and
// SysProcAttr, where it sets Setsid. SIGHUP, SIGINT, SIGQUIT, SIGPIPE and SIGTERM have their
// default dispositions in what is started, even if this program ignores them.
//
// The caller must call both Wait and Close of the Process, in any order.
func Start(cmd *exec.Cmd, p shellbox.Program) (shellbox.Process, error) {
	o := programs.Options{Joined: p.Joined}
	if t := p.Terminal; t != nil {
		o.Terminal, o.Commands, o.Rows, o.Cols = true, t.Commands, t.Rows, t.Cols
	}
	started, err := programs.Start(cmd, o)
	if err != nil {
		return nil, err
	}
	return process{started}, nil
}

type process struct{ *programs.Process }

func (p process) Wait() (shellbox.Status, error) {
	code, signal, err := p.Process.Wait()
	return shellbox.Status{Code: code, Signal: signal}, err
}

// Keyboard returns a writer that types on a terminal no faster than the terminal's echo is read, by
// writing to w. Without it, Linux drops echo while the terminal's output is full, or shows it
// behind the output of another program.
//
// output returns how many bytes of the terminal's output have been read; it is called often, and
// must return at once. If w is the *os.File of a terminal's master, the terminal itself tells
// whether it echoes. Close does nothing. The writer may be used concurrently.
func Keyboard(w io.Writer, output func() int64) io.WriteCloser {
	return programs.NewKeyboard(w, output)
}

// Listener returns a net.Listener whose address is free again when Close returns. The address of
// another one may stay taken for a while in a process that starts programs, because a program that
// is being started has all files of its parent open until the kernel has executed it.
func Listener(l net.Listener) net.Listener { return programs.Listener{Listener: l} }
