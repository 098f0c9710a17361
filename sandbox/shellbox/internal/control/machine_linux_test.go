package control

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/procfs"
)

// A plainShell is a Shell on pipes.
type plainShell struct {
	cmd       *exec.Cmd
	in        io.WriteCloser
	out, errs io.ReadCloser
}

func (p *plainShell) Stdin() io.WriteCloser { return p.in }
func (p *plainShell) Stdout() io.Reader     { return p.out }
func (p *plainShell) Stderr() io.Reader     { return p.errs }
func (p *plainShell) Reap()                 { p.cmd.Wait() }
func (p *plainShell) Close() error {
	p.cmd.Process.Kill()
	p.in.Close()
	return p.out.Close()
}

// startPlainShell starts the shell sh, or "sh" if that is nil. If uid is not 0, the shell runs as
// that user.
func startPlainShell(uid uint32, sh []string) (*plainShell, error) {
	if sh == nil {
		sh = []string{"sh"}
	}
	p := &plainShell{cmd: exec.Command(sh[0], sh[1:]...)}
	p.cmd.Dir = "/"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if uid != 0 {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	var err, err2, err3 error
	p.in, err = p.cmd.StdinPipe()
	p.out, err2 = p.cmd.StdoutPipe()
	p.errs, err3 = p.cmd.StderrPipe()
	return p, errors.Join(err, err2, err3, p.cmd.Start())
}

// startControl returns the Processes of a shell on this machine.
func startControl(t testing.TB, uid uint32, sh ...string) *Processes {
	c := New(func(context.Context) (Shell, error) { return startPlainShell(uid, sh) })
	t.Cleanup(c.Close)
	return c
}

func pidsOf(ps []proc.Process) []int {
	pids := make([]int, len(ps))
	for i, p := range ps {
		pids[i] = p.PID
	}
	return pids
}

// must returns the answer of a call that must not fail.
func must[A any](t testing.TB) func(A, error) A {
	return func(answer A, err error) A {
		t.Helper()
		require.NoError(t, err)
		return answer
	}
}

// startShell starts bash on a terminal, types script, and returns the shell's id.
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
	go func() { // a program would block in writing to a terminal that nobody reads
		defer close(read)
		io.Copy(io.Discard, ptm)
	}()
	t.Cleanup(func() {
		procfs.Signal(pidsOf(procfs.Tree(cmd.Process.Pid)), proc.SIGKILL)
		cmd.Wait()
		<-read // the read ends when no process has the terminal open
		ptm.Close()
	})
	_, err = io.WriteString(ptm, script+"\n")
	require.NoError(t, err)
	return cmd.Process.Pid
}
