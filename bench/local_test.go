//go:build linux

package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// local is this machine, without a transport. It is also a Host, at which record listens.
type local struct{}

func (local) terminal() (stream, error) {
	p, err := startOnTerminal(exec.Command(shellArgs[0], shellArgs[1:]...), 24, 80, nil)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (local) run(script string, stdin io.Reader, stdout io.Writer) error {
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return cmd.Run()
}

// A process is bash on a pseudo-terminal, or a shell on pipes.
type process struct {
	io.Reader
	io.Writer
	cmd    *exec.Cmd
	closes []io.Closer
	stderr io.Reader
}

// startOnTerminal starts a program on a terminal, which is also its standard input unless stdin is
// another.
func startOnTerminal(cmd *exec.Cmd, rows, cols int, stdin *os.File) (*process, error) {
	blocking, tty, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer blocking.Close()
	defer tty.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}); err != nil {
		return nil, err
	}
	modes, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	modes.Oflag &^= unix.ONLCR
	modes.Lflag &^= unix.ECHOCTL
	modes.Iflag |= unix.IUTF8
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, modes); err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	unix.SetNonblock(fd, true) // otherwise Close would not end a Read
	ptm := os.NewFile(uintptr(fd), "terminal")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	if err := cmd.Start(); err != nil {
		ptm.Close()
		return nil, err
	}
	return &process{Reader: ptm, Writer: ptm, cmd: cmd, closes: []io.Closer{ptm}}, nil
}

// Close hangs up, and waits until the shell has ended.
func (p *process) Close() error {
	for _, c := range p.closes {
		c.Close()
	}
	p.cmd.Wait()
	return nil
}

// The methods below make local a Host.

func (local) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Dir, cmd.Env = p.Dir, append(os.Environ(), p.Env...)
	if t := p.Terminal; t != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		started, err := startOnTerminal(cmd, t.Rows, t.Cols, r)
		if err != nil {
			w.Close()
			return nil, err
		}
		started.closes = append(started.closes, w)
		return hosted{started, w}, nil
	}
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	stderr, _ := cmd.StderrPipe()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return hosted{&process{Reader: stdout, Writer: stdin, cmd: cmd,
		closes: []io.Closer{stdin, stdout, stderr}, stderr: stderr}, nil}, cmd.Start()
}

func (local) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
func (local) Lost(context.Context) error { return nil }
func (local) String() string             { return "bare" }
func (local) Close() error               { return nil }

// hosted is a process as package shellbox needs it.
type hosted struct {
	p        *process
	commands io.WriteCloser // of a shell
}

func (h hosted) PID() int                    { return h.p.cmd.Process.Pid }
func (h hosted) Stdin() io.WriteCloser       { return stdinOf{h.p} }
func (h hosted) Commands() io.WriteCloser    { return h.commands }
func (h hosted) Stdout() io.Reader           { return h.p.Reader }
func (h hosted) Stderr() io.Reader           { return h.p.stderr }
func (h hosted) Resize(rows, cols int) error { return errors.ErrUnsupported }

func (h hosted) Wait() (shellbox.Status, error) {
	_, err := h.p.cmd.Process.Wait()
	return shellbox.Status{}, err
}

func (h hosted) Close() error {
	for _, c := range h.p.closes {
		c.Close()
	}
	return nil
}

type stdinOf struct{ *process }

func (s stdinOf) Close() error {
	if s.stderr == nil {
		return nil
	}
	return s.closes[0].Close()
}
