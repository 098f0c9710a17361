package e2b

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/ctxerr"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A Login starts programs in a sandbox, without terminals. It is a sshlogin.Login. Its methods may
// be called concurrently.
type Login struct {
	Client *Client
	// unary says that input goes in calls of its own, because what is between does not pass a
	// stream on before its end.
	unary atomic.Bool
}

// Close implements sshlogin.Login.
func (l *Login) Close() error { return nil }

// tryLimit is how long Try waits for an answer to input.
const tryLimit = 5 * time.Second

// Try finds out how input reaches programs: as a stream, or in calls of its own if a proxy keeps
// streams back. If neither does, the error says so.
func (l *Login) Try(ctx context.Context) error {
	for _, unary := range []bool{false, true} {
		l.unary.Store(unary)
		trying, cancel := ctxerr.WithLimit(ctx, tryLimit, errNoAnswer)
		err := l.echo(trying)
		cancel()
		if !errors.Is(err, errNoAnswer) || ctx.Err() != nil {
			return err
		}
	}
	return errNoAnswer
}

var errNoAnswer = fmt.Errorf("a program in the sandbox does not get its input, or its output does "+
	"not come back, within %v: a proxy that keeps requests or answers back may be between: with "+
	"nginx, set proxy_request_buffering off, proxy_buffering off and proxy_http_version 1.1",
	tryLimit)

// echo sends a line to a program, and waits for it to come back.
func (l *Login) echo(ctx context.Context) error {
	const line = "sandshell"
	p, err := l.Start(ctx, shellbox.Program{Args: []string{"/bin/sh", "-c",
		`read x && echo "$x"`}})
	if err != nil {
		if ctx.Err() != nil {
			err = ctxerr.Of(ctx)
		}
		return err
	}
	defer p.Close()
	defer context.AfterFunc(ctx, func() { p.Close() })()
	_, err = io.WriteString(p.Stdin(), line+"\n")
	var back []byte
	if err == nil {
		back, err = io.ReadAll(io.LimitReader(p.Stdout(), int64(len(line))))
	}
	switch {
	case ctx.Err() != nil:
		return ctxerr.Of(ctx)
	case err != nil:
		return fmt.Errorf("start a program in the sandbox: %w", err)
	case string(back) != line:
		return fmt.Errorf("the sandbox's /bin/sh answers with %q", back)
	}
	return nil
}

// A process is a program in a sandbox.
type process struct {
	client *Client
	pid    uint32
	stream *Stream
	stdin  *stdin

	stdout *io.PipeReader
	out    *io.PipeWriter
	stderr stderr

	ended   chan struct{} // closed when the stream has ended
	status  shellbox.Status
	failure error // why there is no status
	closing sync.Once
}

var _ shellbox.Process = (*process)(nil)

// Start implements sshlogin.Login. A program that does not exist has the exit status 127.
func (l *Login) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	if p.Terminal != nil || p.User != "" || p.ReplaceEnv {
		return nil, fmt.Errorf("start %q: a terminal, a user or a whole environment: %w", p.Args,
			errors.ErrUnsupported)
	}
	config := &ProcessConfig{Cmd: p.Args[0], Args: p.Args[1:], Cwd: p.Dir}
	for _, kv := range p.Env {
		if config.Envs == nil {
			config.Envs = map[string]string{}
		}
		name, value, _ := strings.Cut(kv, "=")
		config.Envs[name] = value
	}
	yes := true
	s, err := l.Client.Stream(ctx, ProcessService+"Start", &StartRequest{Process: config,
		Stdin: &yes})
	if err != nil {
		return nil, err
	}
	proc := &process{client: l.Client, stream: s, ended: make(chan struct{})}
	stop := context.AfterFunc(ctx, s.Close)
	for proc.pid == 0 {
		var m ProcessResponse
		if err = s.Next(&m); err != nil {
			break
		}
		if m.Event != nil && m.Event.Start != nil {
			proc.pid = m.Event.Start.PID
		}
	}
	if !stop() {
		err = ctxerr.Of(ctx)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	proc.stdout, proc.out = io.Pipe()
	proc.stdin = newStdin(l.Client, proc.pid, l.unary.Load())
	go proc.read()
	return proc, nil
}

// read reads the events until the stream ends.
func (p *process) read() {
	defer close(p.ended)
	defer p.stream.Close()
	end := io.ErrUnexpectedEOF
	p.failure = errors.New("the connection to the program was cut")
	for {
		var m ProcessResponse
		if err := p.stream.Next(&m); err != nil {
			if !errors.Is(err, io.EOF) && end != io.EOF {
				p.failure = err
			}
			break
		}
		switch e := m.Event; {
		case e == nil:
		case e.Data != nil:
			if len(e.Data.Stdout) > 0 { // a pipe waits for a reader of nothing, too
				_, _ = p.out.Write(e.Data.Stdout) // after Close, it is dropped
			}
			p.stderr.add(e.Data.Stderr)
		case e.End != nil:
			end, p.failure, p.status = io.EOF, nil, statusOf(e.End)
		}
	}
	p.out.CloseWithError(end)
	p.stderr.finish(end)
	p.stdin.abandon()
}

// statusOf returns the status that an event tells of.
func statusOf(e *EndEvent) shellbox.Status {
	if e.Exited {
		return shellbox.Status{Code: int(e.ExitCode)}
	}
	signal := syscall.SIGKILL
	if e.Status == "signal: terminated" {
		signal = syscall.SIGTERM
	}
	return shellbox.Status{Code: 128 + int(signal), Signal: int(signal)}
}

func (p *process) PID() int                 { return int(p.pid) }
func (p *process) Stdin() io.WriteCloser    { return p.stdin }
func (p *process) Commands() io.WriteCloser { return nil }
func (p *process) Stdout() io.Reader        { return p.stdout }
func (p *process) Stderr() io.Reader        { return &p.stderr }
func (p *process) Resize(int, int) error    { return errors.ErrUnsupported }

// Wait implements shellbox.Process. It waits for the end of the output too, which E2B sends first.
func (p *process) Wait() (shellbox.Status, error) {
	<-p.ended
	return p.status, p.failure
}

// Close implements shellbox.Process. It ends the program's input, so that a program which nobody
// reads any more ends.
func (p *process) Close() error {
	p.closing.Do(func() {
		p.stdout.Close()
		p.stderr.finish(io.ErrClosedPipe)
		p.stdin.abandon()
		p.stream.Close()
		<-p.ended
		p.stdin.closeBoxEnd()
	})
	return nil
}
