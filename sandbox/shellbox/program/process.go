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

// A Process is a program that has been started, the leader of a process session of its own. Its
// methods are those of a shellbox.Process, which says what they have to do; what they do beyond it
// is said here. They may be called from several goroutines.
//
// The streams and the end of the process are taken care of by Close and by Wait: both have to be
// called, in any order.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr io.ReadCloser // nil with a terminal

	screen   *screen   // nil without a terminal
	keyboard *Keyboard // nil without
	tty      int       // the terminal's number
	commands *os.File  // nil unless StartShell has started it

	close  sync.Once
	wait   func() error
	reaped atomic.Bool // the id may be another process's
}

func newProcess(cmd *exec.Cmd) *Process {
	p := &Process{cmd: cmd}
	p.wait = sync.OnceValue(func() error {
		defer p.reaped.Store(true)
		return cmd.Wait()
	})
	return p
}

// Start starts cmd on three pipes. Its Path, Args, Env and Dir count, and its SysProcAttr, of which
// Setsid is set here; Command makes one.
//
// A program that ignores signals, because it was started so (nohup, or "&" in a script) or by
// signal.Ignore, does not pass that on: SIGHUP, SIGINT, SIGQUIT, SIGPIPE and SIGTERM have their
// default dispositions in what is started.
func Start(cmd *exec.Cmd) (*Process, error) { return startOnPipes(cmd, false) }

// StartJoined is Start for shellbox.Program's Joined: the program's standard error is its standard
// output, and Stderr is empty.
func StartJoined(cmd *exec.Cmd) (*Process, error) { return startOnPipes(cmd, true) }

func startOnPipes(cmd *exec.Cmd, joined bool) (*Process, error) {
	ours, theirs, err := OpenPipes()
	if err != nil {
		return nil, err
	}
	defer closeAll(theirs[:])
	streams := theirs
	if joined {
		streams[2] = streams[1]
	}
	if err := start(cmd, streams, false); err != nil {
		closeAll(ours[:])
		return nil, err
	}
	p := newProcess(cmd)
	p.stdin, p.stdout, p.stderr = ours[0], ours[1], ours[2]
	return p, nil
}

// StartOnTerminal is Start on a new terminal of that size, in characters, as OpenTerminal makes it.
// What is written to Stdin is typed by a Keyboard, so Stdout has to be read all along.
func StartOnTerminal(cmd *exec.Cmd, rows, cols int) (*Process, error) {
	master, end, err := OpenTerminal(rows, cols)
	if err != nil {
		return nil, err
	}
	defer end.Close()
	return startOn(cmd, master, end, end)
}

// StartShell is StartOnTerminal for a shell whose commands come on a pipe, as shellbox.Terminal's
// Commands wants it: the program's standard input is that pipe (OpenCommands), which Commands
// writes to, and the terminal is its standard output, its standard error and its controlling
// terminal. A Guard reads that.
func StartShell(cmd *exec.Cmd, rows, cols int) (*Process, error) {
	read, write, err := OpenCommands()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	master, end, err := OpenTerminal(rows, cols)
	if err != nil {
		write.Close()
		return nil, err
	}
	defer end.Close()
	p, err := startOn(cmd, master, end, read)
	if err != nil {
		write.Close()
		return nil, err
	}
	p.commands = write
	p.stdout = struct {
		io.Reader
		io.Closer
	}{&Guard{Terminal: p.screen, PID: p.PID(), Kill: func() { p.cmd.Process.Kill() }}, p.screen}
	return p, nil
}

// startOn starts cmd on a terminal, of which it closes the master if that fails.
func startOn(cmd *exec.Cmd, master, end, stdin *os.File) (*Process, error) {
	if err := start(cmd, [3]*os.File{stdin, end, end}, true); err != nil {
		master.Close()
		return nil, err
	}
	p := newProcess(cmd)
	p.screen, p.tty = &screen{File: master}, tty.Number(end)
	p.keyboard = NewKeyboard(master, p.screen.read.Load)
	p.stdin, p.stdout = p.keyboard, p.screen
	return p, nil
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// TTY returns the number of the program's terminal, as proc.Process has it; 0 without a terminal,
// and where terminals have no numbers.
func (p *Process) TTY() int { return p.tty }

// Stdin is the program's standard input or, with a terminal, types on that; closing it does nothing
// then.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Commands writes to the pipe that is the standard input of what StartShell has started; nil for
// any other program. A Write blocks while the pipe is full (Linux: 64 KiB). Close frees it, and so
// does the end of the last process that has the pipe open to read.
func (p *Process) Commands() io.WriteCloser {
	if p.commands == nil {
		return nil // not a non-nil interface that holds nil
	}
	return p.commands
}

// Stdout is the program's standard output, or what its terminal shows. With a terminal it ends when
// no process has that open any more.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Stderr is the program's standard error; nil with a terminal.
func (p *Process) Stderr() io.Reader {
	if p.stderr == nil {
		return nil // not a non-nil interface that holds nil
	}
	return p.stderr
}

// Resize sets the terminal's size, in characters. Without a terminal the error is
// errors.ErrUnsupported.
func (p *Process) Resize(rows, cols int) error {
	if p.screen == nil {
		return errors.ErrUnsupported
	}
	return Resize(p.screen, rows, cols)
}

// Wait waits for the program's end, and returns its exit status and 0, or 128+n and n if signal n
// ended it: the Code and the Signal of a shellbox.Status. It does not wait for the end of the
// output. The error says that there is no status.
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

// Settle waits, for about limit, until all that has been printed on the terminal up to now has been
// read, and its reader is done with it: has called Read again. A Host that looks at its processes
// itself (hostapi.Processes) calls it after the look. busy: that has not come about. Without a
// terminal it returns at once.
func (p *Process) Settle(limit time.Duration) (busy bool) {
	s := p.screen
	return s != nil && !tty.Within(limit, func() bool {
		return s.waits.Load() && !tty.Readable(s) && s.waits.Load()
	})
}

// Ended reports whether Wait has seen the program's end. The process's id may be another's from
// then on.
func (p *Process) Ended() bool { return p.reaped.Load() }

// Discard is Keyboard.Discard for the terminal's Keyboard, with the terminal's number for flush. It
// is for a Host that looks at its processes itself (hostapi.Processes). Without a terminal, and
// where terminals have no numbers, it does nothing.
func (p *Process) Discard(limit time.Duration, flush func(tty int) int) (dropped int) {
	if p.tty == 0 {
		return 0
	}
	return p.keyboard.Discard(limit, func() int { return flush(p.tty) })
}

// Close closes the streams: reads and writes under way return, and a terminal hangs up. Closing
// again does nothing. It always returns nil.
func (p *Process) Close() error {
	p.close.Do(func() {
		p.stdin.Close()
		if p.commands != nil {
			p.commands.Close()
		}
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
