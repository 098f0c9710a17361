package sshhost

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/programs"
	"github.com/sandshell/sandshell/internal/sshconn"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A process is a program on its own channel.
//
// Unless the program prints little, its caller should read both outputs: they share the channel's
// window of 2 MiB, so an unread standard error eventually blocks the standard output too. Unread
// output of one channel does not block another channel.
type process struct {
	*sshconn.Stream
	on       *sshconn.Conn
	pid      int
	terminal bool
	stderr   io.Reader          // nil with a terminal
	feeder   *process           // writes to the FIFO of commands; nil if there is none
	keyboard *programs.Keyboard // nil without a terminal
	shown    atomic.Int64       // bytes of the terminal's output that have been read

	endOnce sync.Once
	status  shellbox.Status
	endErr  error
	ended   chan struct{} // closed when status or endErr is set
}

var _ hostapi.SettledProcess = (*process)(nil)

// newProcess makes a process of a session, which it owns from then on.
func newProcess(s *session, p shellbox.Program) *process {
	proc := &process{Stream: sshconn.NewStream(s, s.on.Group), on: s.on.Conn,
		terminal: p.Terminal != nil, ended: make(chan struct{})}
	proc.OnClose = s.release
	if proc.terminal {
		proc.keyboard = programs.NewKeyboard(proc.Stream, proc.shown.Load)
	}
	if !s.on.Run(func() {
		for r := range s.requests { // unread requests would block the whole connection
			status, ok := parseStatus(r)
			if ok {
				proc.setStatus(status, nil)
			}
			if r.WantReply {
				r.Reply(ok, nil)
			}
		}
		proc.setStatus(shellbox.Status{}, errNoStatus)
		s.closedByServer()
	}) {
		s.closedByServer() // the connection is closing, and its channels with it
	}
	return proc
}

func (p *process) setStatus(s shellbox.Status, err error) {
	p.endOnce.Do(func() {
		p.status, p.endErr = s, err
		close(p.ended)
	})
}

func (p *process) PID() int          { return p.pid }
func (p *process) Stderr() io.Reader { return p.stderr }

func (p *process) Stdin() io.WriteCloser {
	if p.terminal {
		return p.keyboard
	}
	return stdin{p}
}

func (p *process) Stdout() io.Reader {
	if p.terminal {
		return screen{p}
	}
	return wholeReader{p.Out, p.on}
}

// Commands implements shellbox.Process. It returns the feeder's standard input. After the program
// has ended, writes succeed until the feeder's own write to the FIFO has failed.
func (p *process) Commands() io.WriteCloser {
	if p.feeder == nil {
		return nil
	}
	return stdin{p.feeder}
}

// Resize implements shellbox.Process. It returns when the server has applied the size. Otherwise a
// shell's next command, which goes over another channel, might overtake it.
func (p *process) Resize(rows, cols int) error {
	if !p.terminal {
		return errors.New("resize: the program has no terminal")
	}
	return p.Stream.Resize(rows, cols)
}

// settleLimit bounds Settle.
const settleLimit = time.Second

// Settle implements hostapi.SettledProcess. A server's answer to a request follows the output that
// it has sent before. OpenSSH looks for output, and then for requests. It may answer a request
// before it sends the output that it has found in the same turn (server_loop2 in its serverloop.c).
// But it sends that output before it answers the next request. So Settle makes two requests.
func (p *process) Settle(ctx context.Context) (busy bool, err error) {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	for range 2 {
		select {
		case <-p.on.Ping():
		case <-p.on.Gone():
			return false, sshconn.ErrGone
		case <-p.Closed():
			return false, net.ErrClosed
		case <-limit.C:
			return true, nil
		case <-ctx.Done():
			return true, ctxerr.Of(ctx)
		}
	}
	return false, nil
}

// Wait implements shellbox.Process. It returns when the server has sent the status, or when it is
// certain that the server will not send one.
func (p *process) Wait() (shellbox.Status, error) {
	select {
	case <-p.ended:
		return p.status, p.endErr
	default:
	}
	select {
	case <-p.ended:
		return p.status, p.endErr
	case <-p.Closed():
		return shellbox.Status{}, net.ErrClosed
	case <-p.on.Stopped():
		return shellbox.Status{}, net.ErrClosed
	}
}

// Close closes the channel and the feeder's channel. A program without a terminal goes on without
// its streams.
func (p *process) Close() error {
	p.Stream.Close()
	if p.feeder != nil {
		p.feeder.Close()
	}
	return nil
}

// stdin is the standard input of a process without a terminal.
type stdin struct{ p *process }

func (w stdin) Write(b []byte) (int, error) { return w.p.Write(b) }
func (w stdin) Close() error                { return w.p.CloseWrite() }

// A screen reads the output of a process's terminal, and counts it for the keyboard.
type screen struct{ p *process }

func (s screen) Read(b []byte) (int, error) {
	n, err := wholeReader{s.p.Out, s.p.on}.Read(b)
	s.p.shown.Add(int64(n))
	return n, err
}

// An afterMark reads a stream from the line after mark on. Earlier lines come from the login
// shell's startup files, not from the program.
type afterMark struct {
	r    *sshconn.Pump
	mark []byte
	once sync.Once
	err  error
}

func (a *afterMark) Read(p []byte) (int, error) {
	a.once.Do(func() { _, _, a.err = a.r.SkipPast(a.mark) })
	if a.err != nil {
		return 0, a.err
	}
	return a.r.Read(p)
}

// A wholeReader returns io.EOF only if all data has arrived. When the connection breaks, x/crypto
// also ends all channels with io.EOF.
type wholeReader struct {
	r  io.Reader
	on *sshconn.Conn
}

func (w wholeReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err == io.EOF && (w.on.Broken() || w.connEnded()) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// connEnded asks the server whether the connection has ended. The server may have ended it. Or this
// side has ended it, because a byte was changed on the way.
func (w wholeReader) connEnded() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return w.on.CheckEnded(ctx)
}
