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

// A piped is sh on pipes, without a terminal.
type piped struct {
	cmd       *exec.Cmd
	in        io.WriteCloser
	out, errs io.ReadCloser
}

func (p *piped) Stdin() io.WriteCloser { return p.in }
func (p *piped) Stdout() io.Reader     { return p.out }
func (p *piped) Stderr() io.Reader     { return p.errs }
func (p *piped) Reap()                 { p.cmd.Wait() }
func (p *piped) Close() error {
	p.cmd.Process.Kill()
	p.in.Close()
	return p.out.Close()
}

// startPiped starts sh, which is nil: sh, as the user of that id if it is not 0.
func startPiped(uid uint32, sh []string) (*piped, error) {
	if sh == nil {
		sh = []string{"sh"}
	}
	p := &piped{cmd: exec.Command(sh[0], sh[1:]...)}
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

// startControl returns the answers of a shell on this machine.
func startControl(t testing.TB, uid uint32, sh ...string) *Processes {
	c := New(func(context.Context) (Shell, error) { return startPiped(uid, sh) })
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
		procfs.Signal(pidsOf(procfs.Tree(cmd.Process.Pid)), proc.SIGKILL)
		cmd.Wait()
		<-read // no process has the terminal open any more
		ptm.Close()
	})
	_, err = io.WriteString(ptm, script+"\n")
	require.NoError(t, err)
	return cmd.Process.Pid
}
