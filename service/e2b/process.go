package e2b

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/internal/e2b"
	"github.com/sandshell/sandshell/sandbox"
)

// maxProcesses bounds the running processes of a box that clients have started here. Each may keep
// 2 MiB of output and 1 MiB of input.
const maxProcesses = 200

// A process is a program that a client has started. It goes on when the client's connection ends,
// and ends with this program.
type process struct {
	pid     uint32
	tag     string
	config  *e2b.ProcessConfig
	output  output
	running *running

	mu       sync.Mutex
	signal   syscall.Signal // the last one that a client has sent; 0 if none
	deadline bool           // its time is over

	started chan struct{} // closed when it is in the table, or has not started
	done    chan struct{} // closed when it has ended
}

// start starts a program, and sends what it prints until it has ended.
func (c *call) start(req *e2b.StartRequest, send func(any) error) error {
	if req.Process == nil || req.Process.Cmd == "" {
		return e2b.Errorf(e2b.InvalidArgument, "process.cmd: it is empty: name a program")
	}
	p, err := c.begin(req)
	if err != nil {
		return err
	}
	if limit := c.timeout(); limit > 0 {
		late := time.AfterFunc(limit, func() {
			p.mu.Lock()
			p.deadline = true
			p.mu.Unlock()
			p.kill()
		})
		go func() { <-p.done; late.Stop() }()
	}
	return c.follow(p, send)
}

// timeout returns how long the call may take; 0 means no limit.
func (c *call) timeout() time.Duration {
	ms, err := strconv.ParseInt(c.r.Header.Get("Connect-Timeout-Ms"), 10, 64)
	if err != nil || ms <= 0 || ms > 1<<40 {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// begin starts a program, and adds it to the box's processes.
func (c *call) begin(req *e2b.StartRequest) (*process, error) {
	if req.Tag != "" {
		if _, err := c.state.find(&e2b.Selector{Tag: req.Tag}); err == nil {
			return nil, e2b.Errorf(e2b.AlreadyExists, "a process has the tag %q", req.Tag)
		}
	}
	if c.state.count() >= maxProcesses {
		return nil, e2b.Errorf(e2b.ResourceExhausted, "the sandbox has %d processes: end some",
			maxProcesses)
	}
	what := program{args: append([]string{req.Process.Cmd}, req.Process.Args...),
		user: c.account.switchTo, dir: c.account.dir}
	if req.Process.Cwd != "" {
		what.dir = c.account.path(req.Process.Cwd)
	}
	what.env = []string{"E2B_SANDBOX=true", "E2B_SANDBOX_ID=" + c.state.id}
	if req.PTY != nil {
		what.size = cmp.Or(req.PTY.Size, &e2b.Size{})
	}
	for name, value := range req.Process.Envs {
		what.env = append(what.env, name+"="+value)
	}
	p := &process{tag: req.Tag, config: req.Process, started: make(chan struct{}),
		done: make(chan struct{})}
	var in *input
	if req.PTY != nil || req.Stdin == nil || *req.Stdin {
		in = &input{}
	}
	c.state.retain()
	running, err := launch(c.r.Context(), c.box, what, in, p.output.add,
		func(code int, err error) {
			<-p.started
			p.ended(code, err)
			if p.running != nil && (err == nil || !isGone(err)) {
				c.logs.add(c.state.id, "info", "process ended", "pid", fmt.Sprint(p.pid), "status",
					p.output.end.Status)
			}
			c.state.remove(p)
			c.state.release()
		})
	if err == nil {
		p.running, p.pid = running, uint32(running.process.PID())
		c.state.add(p)
		c.logs.add(c.state.id, "info", "process started", "pid", fmt.Sprint(p.pid), "command",
			strings.Join(what.args, " "))
	}
	close(p.started)
	if err != nil {
		return nil, startError(err, what.dir)
	}
	return p, nil
}

// startError returns the error of a program that could not be started.
func startError(err error, dir string) error {
	switch {
	case isGone(err):
		return errBoxGone
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return e2b.Errorf(e2b.InvalidArgument, "cwd %q does not exist: %v", dir, err)
	case errors.Is(err, fs.ErrPermission):
		return e2b.Errorf(e2b.PermissionDenied, "start the process: %v", err)
	}
	return fmt.Errorf("start the process: %w", err)
}

// ended says how the program has ended.
func (p *process) ended(code int, err error) {
	p.mu.Lock()
	signal, deadline := p.signal, p.deadline
	p.mu.Unlock()
	end := &e2b.EndEvent{ExitCode: int32(code), Exited: true,
		Status: "exit status " + strconv.Itoa(code)}
	switch {
	case deadline, signal == syscall.SIGKILL:
		end = &e2b.EndEvent{ExitCode: -1, Status: "signal: killed"}
	case signal != 0 && code == 128+int(signal):
		end = &e2b.EndEvent{ExitCode: -1, Status: "signal: " + signal.String()}
	}
	if end.ExitCode != 0 {
		end.Error = end.Status
	}
	p.output.finish(end, err != nil && isGone(err))
	close(p.done)
}

// kill kills the program and all that it has started.
func (p *process) kill() {
	p.output.stop()
	p.running.cancel()
}

// follow sends what a process prints to a client.
func (c *call) follow(p *process, send func(any) error) error {
	r := p.output.read()
	defer r.close()
	say := func(e *e2b.ProcessEvent) error { return send(&e2b.ProcessResponse{Event: e}) }
	if err := say(&e2b.ProcessEvent{Start: &e2b.StartEvent{PID: p.pid}}); err != nil {
		return err
	}
	ticks, stop := c.keepAlive()
	defer stop()
	err := r.follow(c.r.Context(), ticks, say)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deadline && err == nil {
		return e2b.Errorf(e2b.DeadlineExceeded, "the process's time is over: it was killed")
	}
	return err
}

// keepAlive returns a channel that gets a value when a stream is to show that it is alive.
func (c *call) keepAlive() (ticks <-chan struct{}, stop func()) {
	const otherwise, most = 90, 3600
	seconds, err := strconv.Atoi(c.r.Header.Get("Keepalive-Ping-Interval"))
	if err != nil || seconds < 1 || seconds > most {
		seconds = otherwise
	}
	out, done := make(chan struct{}), make(chan struct{})
	go func() {
		t := time.NewTicker(time.Duration(seconds) * time.Second)
		defer t.Stop()
		for {
			select {
			case <-t.C:
			case <-done:
				return
			}
			select {
			case out <- struct{}{}:
			case <-done:
				return
			}
		}
	}()
	return out, sync.OnceFunc(func() { close(done) })
}

// connect sends what a process prints that no other client has been sent.
func (c *call) connect(req *e2b.ProcessRequest, send func(any) error) error {
	p, err := c.state.find(req.Process)
	if err != nil {
		return err
	}
	if limit := c.timeout(); limit > 0 {
		ctx, cancel := context.WithTimeout(c.r.Context(), limit)
		defer cancel()
		c.r = c.r.WithContext(ctx)
	}
	return c.follow(p, send)
}

func (c *call) list(*e2b.Empty) (any, error) {
	list := &e2b.ListResponse{}
	for _, p := range c.state.all() {
		list.Processes = append(list.Processes, &e2b.ProcessInfo{Config: p.config, PID: p.pid,
			Tag: p.tag})
	}
	slices.SortFunc(list.Processes, func(a, b *e2b.ProcessInfo) int {
		return cmp.Compare(a.PID, b.PID)
	})
	return list, nil
}

func (c *call) sendInput(req *e2b.SendInputRequest) (any, error) {
	p, err := c.state.find(req.Process)
	if err == nil {
		err = p.take(c.r.Context(), req.Input)
	}
	return &e2b.Empty{}, err
}

// take sends input to the program.
func (p *process) take(ctx context.Context, in *e2b.Input) error {
	switch {
	case in == nil:
		return nil
	case p.running.terminal && in.Stdin != nil:
		return e2b.Errorf(e2b.InvalidArgument, "input.stdin: the process has a terminal: send "+
			"input.pty")
	case p.running.terminal:
		return p.running.input.write(ctx, in.PTY)
	case in.PTY != nil:
		return e2b.Errorf(e2b.InvalidArgument, "input.pty: the process has no terminal: send "+
			"input.stdin")
	case p.running.input == nil:
		return errInputClosed
	}
	return p.running.input.write(ctx, in.Stdin)
}

// streamInput sends a stream of input to a process.
func (c *call) streamInput(next func(*e2b.StreamInputRequest) error) (any, error) {
	var p *process
	for {
		var m e2b.StreamInputRequest
		err := next(&m)
		switch {
		case errors.Is(err, errEndOfStream):
			return &e2b.Empty{}, nil
		case err != nil:
			return nil, err
		case m.Start != nil:
			if p, err = c.state.find(m.Start.Process); err != nil {
				return nil, err
			}
		case m.Data == nil:
		case p == nil:
			return nil, e2b.Errorf(e2b.InvalidArgument, "the first message names no process")
		default:
			if err := p.take(c.r.Context(), m.Data.Input); err != nil {
				return nil, err
			}
		}
	}
}

func (c *call) closeStdin(req *e2b.ProcessRequest) (any, error) {
	p, err := c.state.find(req.Process)
	if err == nil {
		switch {
		case p.running.terminal:
			err = e2b.Errorf(e2b.FailedPrecondition, "the process has a terminal: send "+
				"input.pty with ^D")
		case p.running.input != nil:
			p.running.input.close()
		}
	}
	return &e2b.Empty{}, err
}

func (c *call) sendSignal(req *e2b.SendSignalRequest) (any, error) {
	s := syscall.Signal(req.Signal)
	if s < 1 || s > 31 {
		return nil, e2b.Errorf(e2b.InvalidArgument, "signal: %d: name one", req.Signal)
	}
	p, err := c.state.find(req.Process)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.signal = s
	p.mu.Unlock()
	if s != syscall.SIGKILL {
		return &e2b.Empty{}, p.running.signal(c.r.Context(), s)
	}
	p.kill()
	select {
	case <-p.done:
		return &e2b.Empty{}, nil
	case <-c.r.Context().Done():
		return nil, context.Cause(c.r.Context())
	}
}

func (c *call) update(req *e2b.UpdateRequest) (any, error) {
	p, err := c.state.find(req.Process)
	switch {
	case err != nil:
	case req.PTY == nil || req.PTY.Size == nil:
	case !p.running.terminal:
		err = e2b.Errorf(e2b.FailedPrecondition, "the process has no terminal")
	default:
		err = p.running.process.Resize(c.r.Context(), int(req.PTY.Size.Rows),
			int(req.PTY.Size.Cols))
	}
	return &e2b.Empty{}, err
}

// isGone reports whether an error says that the box is gone or does not run.
func isGone(err error) bool {
	return errors.Is(err, sandbox.ErrLost) || errors.Is(err, sandbox.ErrClosed) ||
		errors.Is(err, errBoxGone)
}

// errBoxGone cuts the connection of a client: it then asks /health, and is told.
var errBoxGone = fmt.Errorf("the sandbox is gone: %w", http.ErrAbortHandler)
