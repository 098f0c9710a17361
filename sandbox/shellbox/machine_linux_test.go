package shellbox

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/inspect"
	"github.com/sandshell/sandshell/sandbox/shellbox/proc"
)

// A machine is a Host that starts programs on pipes, as the user of that id if it is not 0.
type machine struct {
	uid uint32
	sh  []string // what sh is; nil: sh
}

func (m machine) Start(_ context.Context, p Program) (Process, error) {
	args := p.Args
	if m.sh != nil && args[0] == "sh" {
		args = m.sh
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = p.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if m.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: m.uid, Gid: m.uid}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	return &piped{cmd, in, out, errs}, cmd.Start()
}

func (m machine) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (m machine) Lost(context.Context) error { return nil }
func (m machine) String() string             { return "machine" }
func (m machine) Close() error               { return nil }

type piped struct {
	cmd       *exec.Cmd
	in        io.WriteCloser
	out, errs io.ReadCloser
}

func (p *piped) PID() int                 { return p.cmd.Process.Pid }
func (p *piped) Stdin() io.WriteCloser    { return p.in }
func (p *piped) Commands() io.WriteCloser { return nil }
func (p *piped) Stdout() io.Reader        { return p.out }
func (p *piped) Stderr() io.Reader        { return p.errs }
func (p *piped) Resize(int, int) error    { return errors.ErrUnsupported }
func (p *piped) Wait() (Status, error)    { return Status{}, p.cmd.Wait() }
func (p *piped) Close() error {
	p.cmd.Process.Kill()
	p.in.Close()
	return p.out.Close()
}

// startControl returns a control on this machine.
func startControl(t testing.TB, uid uint32, sh ...string) *control {
	c := newControl(machine{uid, sh}, "=end=")
	t.Cleanup(c.close)
	return c
}

// must returns an answer that comes without an error.
func must[A any](t testing.TB) func(A, error) A {
	return func(answer A, err error) A {
		t.Helper()
		require.NoError(t, err)
		return answer
	}
}

// startShell starts bash on a terminal with a script, and returns its id.
func startShell(t testing.TB, script string, env ...string) int {
	t.Helper()
	for _, program := range []string{"bash", "stty"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("this machine has no " + program)
		}
	}
	cmd := exec.Command("bash", "--noediting", "--norc", "-i")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), env...)
	ptm, err := pty.Start(cmd)
	require.NoError(t, err)
	read := make(chan struct{})
	go func() { // or a program blocks in writing
		defer close(read)
		io.Copy(io.Discard, ptm)
	}()
	t.Cleanup(func() {
		inspect.Signal(pidsOf(inspect.Tree(cmd.Process.Pid)), proc.SIGKILL)
		cmd.Wait()
		<-read // no process has the terminal open any more
		ptm.Close()
	})
	_, err = io.WriteString(ptm, script+"\n")
	require.NoError(t, err)
	return cmd.Process.Pid
}
