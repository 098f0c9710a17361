package program

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/tty"
)

// A Process is a program that has been started, the leader of a process session of its own. Its methods are those of a shellbox.Process, which says
// what they have to do; what they do beyond it is said here. They may be called from several goroutines.
//
// The streams and the end of the process are taken care of by Close and by Wait: both have to be called, in any order.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr io.ReadCloser // nil with a terminal
	screen *screen       // nil without

	close sync.Once
	wait  func() error
}

func newProcess(cmd *exec.Cmd) *Process { return &Process{cmd: cmd, wait: sync.OnceValue(cmd.Wait)} }

// Start starts cmd on three pipes. Its Path, Args, Env and Dir count, and its SysProcAttr, of which Setsid is set here; Command makes one.
//
// A program that ignores signals, because it was started so (nohup, or "&" in a script) or by signal.Ignore, does not pass that on: SIGHUP, SIGINT,
// SIGQUIT, SIGPIPE and SIGTERM have their default dispositions in what is started.
func Start(cmd *exec.Cmd) (*Process, error) {
	ours, theirs, err := OpenPipes()
	if err != nil {
		return nil, err
	}
	defer closeAll(theirs[:])
	if err := start(cmd, theirs, false); err != nil {
		closeAll(ours[:])
		return nil, err
	}
	p := newProcess(cmd)
	p.stdin, p.stdout, p.stderr = ours[0], ours[1], ours[2]
	return p, nil
}

// StartOnTerminal is Start on a new terminal of that size, in characters, as OpenTerminal makes it. What is written to Stdin is typed by a Keyboard,
// so Stdout has to be read all along.
func StartOnTerminal(cmd *exec.Cmd, rows, cols int) (*Process, error) {
	master, end, err := OpenTerminal(rows, cols)
	if err != nil {
		return nil, err
	}
	defer end.Close()
	if err := start(cmd, [3]*os.File{end, end, end}, true); err != nil {
		master.Close()
		return nil, err
	}
	p := newProcess(cmd)
	p.screen = &screen{File: master}
	p.stdin, p.stdout = NewKeyboard(master, p.screen.read.Load), p.screen
	return p, nil
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stdin is the program's standard input; closing it does nothing where that is a terminal.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is the program's standard output, or what its terminal shows. With a terminal it ends when no process has that open any more.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Stderr is the program's standard error; nil with a terminal.
func (p *Process) Stderr() io.Reader {
	if p.stderr == nil {
		return nil // not a non-nil interface that holds nil
	}
	return p.stderr
}

// Resize sets the terminal's size, in characters. Without a terminal the error is errors.ErrUnsupported.
func (p *Process) Resize(rows, cols int) error {
	if p.screen == nil {
		return errors.ErrUnsupported
	}
	return Resize(p.screen, rows, cols)
}

// Wait waits for the program's end, and returns its exit status and 0, or 128+n and n if signal n ended it: the Code and the Signal of a
// shellbox.Status. It does not wait for the end of the output. The error says that there is no status.
func (p *Process) Wait() (code, signal int, err error) {
	var exit *exec.ExitError
	if err := p.wait(); err != nil && !errors.As(err, &exit) {
		return 0, 0, err
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), int(status.Signal()), nil
	}
	return p.cmd.ProcessState.ExitCode(), 0, nil
}

// Settle waits, for at most limit, until all that has been printed on the terminal up to now has been read, and its reader is done with it: has called
// Read again. A Host that looks at its processes itself (shellbox.Processes) calls it after the look. Without a terminal it returns at once.
func (p *Process) Settle(limit time.Duration) {
	if s := p.screen; s != nil {
		tty.Within(limit, func() bool { return s.waits.Load() && !tty.Readable(s) && s.waits.Load() })
	}
}

// Close closes the streams: reads and writes under way return, and a terminal hangs up. Closing again does nothing. It always returns nil.
func (p *Process) Close() error {
	p.close.Do(func() {
		p.stdin.Close()
		p.stdout.Close()
		if p.stderr != nil {
			p.stderr.Close()
		}
	})
	return nil
}

// A screen is a terminal's master whose reads are counted.
type screen struct {
	*os.File
	read  atomic.Int64 // so many bytes
	waits atomic.Bool  // the reader is done with what it got, and waits for more
}

// Read ends with io.EOF when nobody has the terminal open any more, of which Linux says EIO.
func (s *screen) Read(b []byte) (int, error) {
	s.waits.Store(true)
	n, err := s.File.Read(b)
	s.waits.Store(false)
	s.read.Add(int64(n))
	if errors.Is(err, syscall.EIO) {
		err = io.EOF
	}
	return n, err
}
