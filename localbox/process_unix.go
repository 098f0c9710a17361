//go:build linux || darwin || freebsd || netbsd || openbsd

package localbox

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

const supported = true

// A process is one of this machine.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	stderr *os.File // nil with a terminal
	once   sync.Once
	wait   func() (shellbox.Status, error)
}

// startTerminal starts cmd as the leader of a process session on a new terminal.
func startTerminal(cmd *exec.Cmd, t *shellbox.Terminal) (shellbox.Process, error) {
	blocking, tty, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	ptm, err := pollable(blocking)
	blocking.Close()
	if err != nil {
		return nil, err
	}
	if err := prepare(ptm, tty, t.Rows, t.Cols); err != nil {
		ptm.Close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		ptm.Close()
		return nil, err
	}
	return newProcess(cmd, noClose{ptm}, ptm, nil), nil
}

// pollable returns a copy of f that goes through the runtime's poller, so that Close frees a Read. creack/pty calls Fd on its
// files, which puts them in blocking mode for good.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("set non-blocking mode", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// prepare sets the terminal's size and modes: no ONLCR, and UTF-8 where the system has a mode for it. ECHOCTL is off so that the
// interrupt key does not show as ^C in the output.
func prepare(ptm, tty *os.File, rows, cols int) error {
	if err := resize(ptm, rows, cols); err != nil {
		return err
	}
	conn, err := tty.SyscallConn()
	if err != nil {
		return err
	}
	var modeErr error
	err = conn.Control(func(fd uintptr) {
		var modes *unix.Termios
		if modes, modeErr = unix.IoctlGetTermios(int(fd), ioctlGetTermios); modeErr != nil {
			return
		}
		modes.Oflag &^= unix.ONLCR
		modes.Lflag &^= unix.ECHOCTL
		modes.Iflag |= iutf8
		modeErr = unix.IoctlSetTermios(int(fd), ioctlSetTermios, modes)
	})
	return errors.Join(err, modeErr)
}

func resize(ptm *os.File, rows, cols int) error {
	conn, err := ptm.SyscallConn()
	if err != nil {
		return err
	}
	var sizeErr error
	err = conn.Control(func(fd uintptr) {
		sizeErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)})
	})
	return errors.Join(err, sizeErr)
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
	if err := cmd.Start(); err != nil {
		closeAll(ours)
		return nil, err
	}
	return newProcess(cmd, ours[0], ours[1], ours[2]), nil
}

func newProcess(cmd *exec.Cmd, stdin io.WriteCloser, stdout, stderr *os.File) *process {
	p := &process{cmd: cmd, stdin: stdin, stdout: stdout, stderr: stderr}
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
		return terminalReader{p.stdout}
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
	return resize(p.stdout, rows, cols)
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
type terminalReader struct{ f *os.File }

func (r terminalReader) Read(p []byte) (int, error) {
	n, err := r.f.Read(p)
	if errors.Is(err, syscall.EIO) {
		err = io.EOF
	}
	return n, err
}

type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }
