//go:build linux || darwin || freebsd || netbsd || openbsd

package localbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/sandshell/sandshell/internal/program"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

const supported = true

// A process is one of this machine.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	stderr *os.File     // nil with a terminal
	read   atomic.Int64 // of a terminal's output
	waits  atomic.Bool  // the reader of a terminal's output is done with what it got, and waits for more
	once   sync.Once
	wait   func() (shellbox.Status, error)
}

// startTerminal starts cmd as the leader of a process session on a new terminal.
func startTerminal(cmd *exec.Cmd, t *shellbox.Terminal) (shellbox.Process, error) {
	ptm, tty, err := program.OpenTerminal(t.Rows, t.Cols)
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := start(cmd); err != nil {
		ptm.Close()
		return nil, err
	}
	return newProcess(cmd, nil, ptm, nil), nil
}

// startPipes starts cmd as the leader of a process session on three pipes.
func startPipes(cmd *exec.Cmd) (shellbox.Process, error) {
	var ours, theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(ours, theirs...))
			return nil, err
		}
		if len(ours) == 0 {
			r, w = w, r // standard input goes the other way
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	defer closeAll(theirs)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := start(cmd); err != nil {
		closeAll(ours)
		return nil, err
	}
	return newProcess(cmd, ours[0], ours[1], ours[2]), nil
}

func newProcess(cmd *exec.Cmd, stdin io.WriteCloser, stdout, stderr *os.File) *process {
	p := &process{cmd: cmd, stdin: stdin, stdout: stdout, stderr: stderr}
	if stderr == nil {
		p.stdin = program.NewKeyboard(stdout, p.read.Load)
	}
	p.wait = sync.OnceValues(func() (shellbox.Status, error) {
		err := cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return shellbox.Status{}, err
		}
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return shellbox.Status{Code: 128 + int(ws.Signal()), Signal: int(ws.Signal())}, nil
		}
		return shellbox.Status{Code: cmd.ProcessState.ExitCode()}, nil
	})
	return p
}

func (p *process) PID() int                       { return p.cmd.Process.Pid }
func (p *process) Stdin() io.WriteCloser          { return p.stdin }
func (p *process) Wait() (shellbox.Status, error) { return p.wait() }

func (p *process) Stdout() io.Reader {
	if p.stderr == nil {
		return terminalReader{p}
	}
	return p.stdout
}

func (p *process) Stderr() io.Reader {
	if p.stderr == nil {
		return nil
	}
	return p.stderr
}

func (p *process) Resize(rows, cols int) error {
	if p.stderr != nil {
		return errors.ErrUnsupported
	}
	return program.Resize(p.stdout, rows, cols)
}

func (p *process) Close() error {
	p.once.Do(func() {
		p.stdin.Close()
		p.stdout.Close()
		if p.stderr != nil {
			p.stderr.Close()
		}
	})
	return nil
}

// A terminalReader ends with io.EOF when nobody has the terminal open any more; Linux says EIO.
type terminalReader struct{ p *process }

func (r terminalReader) Read(b []byte) (int, error) {
	r.p.waits.Store(true)
	n, err := r.p.stdout.Read(b)
	r.p.waits.Store(false)
	r.p.read.Add(int64(n))
	if errors.Is(err, syscall.EIO) {
		err = io.EOF
	}
	return n, err
}
