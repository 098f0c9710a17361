package programs

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
// methods are those of a shellbox.Process; their comments here say only what is particular to this
// one. They may be called concurrently.
//
// Close releases the streams, and Wait the process: the caller must call both, in any order.
type Process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr io.ReadCloser // nil with a terminal

	screen   *screen   // nil without a terminal
	keyboard *Keyboard // nil without a terminal
	tty      int       // the terminal's number
	commands *os.File  // nil without Options.Commands

	close  sync.Once
	wait   func() error
	reaped atomic.Bool // Wait has returned, so the id may belong to another process
}

func newProcess(cmd *exec.Cmd) *Process {
	p := &Process{cmd: cmd}
	p.wait = sync.OnceValue(func() error {
		defer p.reaped.Store(true)
		return cmd.Wait()
	})
	return p
}

// Options say on what a program is started. The zero value is three pipes.
type Options struct {
	// Joined: standard error goes where standard output goes, and Stderr is empty.
	Joined bool

	// Terminal: the program is started on a new terminal of Rows and Cols characters, as
	// OpenTerminal makes it. A Keyboard types what is written to Stdin, so Stdout must be read all
	// the time.
	Terminal   bool
	Rows, Cols int

	// Commands: with Terminal, the program is a shell whose standard input is a pipe, which
	// Process.Commands writes to (see OpenCommands). The terminal is its standard output, its
	// standard error and its controlling terminal. A Guard reads it.
	Commands bool
}

// Start starts cmd. Of cmd it uses Path, Args, Env and Dir, and SysProcAttr, where it sets Setsid.
// Command makes such a cmd.
//
// SIGHUP, SIGINT, SIGQUIT, SIGPIPE and SIGTERM have their default dispositions in what is started,
// even if this program ignores them: because it was started so (by nohup, or with "&" in a script),
// or by signal.Ignore.
func Start(cmd *exec.Cmd, o Options) (*Process, error) {
	switch {
	case !o.Terminal:
		return startOnPipes(cmd, o.Joined)
	case o.Commands:
		return startShell(cmd, o.Rows, o.Cols)
	}
	return startOnTerminal(cmd, o.Rows, o.Cols)
}

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

func startOnTerminal(cmd *exec.Cmd, rows, cols int) (*Process, error) {
	master, end, err := OpenTerminal(rows, cols)
	if err != nil {
		return nil, err
	}
	defer end.Close()
	return startOn(cmd, master, end, end)
}

func startShell(cmd *exec.Cmd, rows, cols int) (*Process, error) {
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

// startOn starts cmd on a terminal. If that fails, it closes the master.
func startOn(cmd *exec.Cmd, master, end, stdin *os.File) (*Process, error) {
	conn, err := master.SyscallConn()
	if err == nil {
		err = start(cmd, [3]*os.File{stdin, end, end}, true)
	}
	if err != nil {
		master.Close()
		return nil, err
	}
	p := newProcess(cmd)
	p.screen, p.tty = &screen{File: master, conn: conn}, tty.Number(end)
	p.keyboard = NewKeyboard(master, p.screen.read.Load)
	p.stdin, p.stdout = p.keyboard, p.screen
	return p, nil
}

// PID returns the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// TTY returns the number of the program's terminal, as in proc.Process. It is 0 without a terminal,
// and on systems whose terminals have no numbers.
func (p *Process) TTY() int { return p.tty }

// Stdin is the program's standard input. With a terminal it types on that, and its Close does
// nothing.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Commands writes to the pipe of a program with Options.Commands; nil for any other. A Write blocks
// while the pipe is full (Linux: 64 KiB). It returns when Commands is closed, and when the last
// process that has the pipe open for reading ends.
func (p *Process) Commands() io.WriteCloser {
	if p.commands == nil {
		return nil // not a non-nil interface that holds nil
	}
	return p.commands
}

// Stdout is the program's standard output, or what its terminal shows. A terminal's output ends
// when no process has the terminal open.
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

// Wait waits for the program's end, and returns the Code and the Signal of a shellbox.Status: the
// exit status and 0, or 128+n and n if signal n ended the program. It does not wait for the end of
// the output. An error says that there is no status.
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

// Settle waits until all that had been printed on the terminal before the call has been read, and
// the reader has called Read again. It waits for about limit; busy reports that this was not
// enough. A Host that implements hostapi.Processes calls it after the look. Without a terminal it
// returns at once.
func (p *Process) Settle(limit time.Duration) (busy bool) {
	s := p.screen
	return s != nil && !tty.Within(limit, func() bool { return s.reading.Done(s) })
}

// Ended reports whether Wait has seen the program's end. The id may belong to another process from
// then on.
func (p *Process) Ended() bool { return p.reaped.Load() }

// Discard is Keyboard.Discard of the terminal's Keyboard. flush gets the terminal's number. Discard
// is for a Host that implements hostapi.Processes. Without a terminal, and on systems whose
// terminals have no numbers, it does nothing.
func (p *Process) Discard(limit time.Duration, flush func(tty int) int) (dropped int) {
	if p.tty == 0 {
		return 0
	}
	return p.keyboard.Discard(limit, func() int { return flush(p.tty) })
}

// Close closes the streams: reads and writes under way return, and a terminal hangs up. It returns
// nil. Closing again does nothing.
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
	conn    syscall.RawConn
	reading tty.Reading
	read    atomic.Int64 // how many bytes have been read
}

// Read returns io.EOF when no process has the terminal open. Linux's error for that is EIO.
func (s *screen) Read(b []byte) (n int, err error) {
	closed := s.reading.Wait(s.conn, func(fd uintptr) bool {
		n, err = readNow(fd, b)
		return !errors.Is(err, syscall.EAGAIN)
	})
	if closed != nil {
		n, err = 0, os.ErrClosed
	}
	s.read.Add(int64(n))
	if errors.Is(err, syscall.EIO) || n == 0 && err == nil && len(b) > 0 {
		err = io.EOF
	}
	return n, err
}
