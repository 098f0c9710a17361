// Package tracing has an OpenTelemetry span for each command of a sandbox.
//
// [New] wraps any sandbox.Sandbox. Spans are named for the method: "execute", "background" and
// "run". One of Execute begins with that call, under the span of its ctx, and lasts until the
// command has ended, whichever call says so; what is done beneath it, such as requests to the
// Docker engine, belongs to it. One of Background lasts until the job's end.
//
// Attributes:
//
//	sandshell.box        string  the sandbox's String
//	sandshell.session    string  the session's id, or the job's; not of a Run
//	sandshell.state      string  exited; running if the command was cut short, or nobody has asked for its end
//	sandshell.exit_code  int     if it has exited
//	sandshell.bytes      int     of output; not of a Run
//	sandshell.duration   float64 in seconds, as the Result has it; not of a Run
//
// A question is an event "waiting", with sandshell.awaits: line, secret or keys. The error with
// which a command ends (a timeout, the box's end) is recorded and is the span's status; an exit
// status other than 0 is not an error. Neither the text of commands nor what they print or are told
// is in a span.
//
// All methods may be called from several goroutines.
package tracing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/sandshell/sandshell/sandbox"
)

const name = "github.com/sandshell/sandshell/sandbox/tracing"

// A Box is a Sandbox that is traced. What it is beyond a Sandbox is to be had by Unwrap or
// sandbox.As. Close it instead of the box.
type Box struct {
	sandbox.Sandbox
	main   *session
	tracer trace.Tracer
	jobs   sync.WaitGroup // one for each job that runs

	mu         sync.Mutex
	unfinished map[*command]bool
	known      map[string]*job
}

var _ sandbox.Sandbox = (*Box)(nil)

// New returns box as a Sandbox that is traced. A nil provider is OpenTelemetry's global one.
func New(box sandbox.Sandbox, provider trace.TracerProvider) *Box {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	b := &Box{Sandbox: box, tracer: provider.Tracer(name), unfinished: map[*command]bool{},
		known: map[string]*job{}}
	b.main = &session{Session: box, box: b}
	return b
}

// Unwrap returns the box that is traced.
func (b *Box) Unwrap() sandbox.Sandbox { return b.Sandbox }

// Open implements sandbox.Sandbox.
func (b *Box) Open(ctx context.Context, opts ...sandbox.SessionOption) (sandbox.Session, error) {
	s, err := b.Sandbox.Open(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return &session{Session: s, box: b}, nil
}

// Run implements sandbox.Sandbox.
func (b *Box) Run(ctx context.Context, cmd *sandbox.Cmd) (int, error) {
	ctx, span := b.tracer.Start(ctx, "run", trace.WithAttributes(
		attribute.String("sandshell.box", b.String())))
	defer span.End()
	code, err := b.Sandbox.Run(ctx, cmd)
	if code >= 0 {
		span.SetAttributes(attribute.String("sandshell.state", sandbox.Exited.String()),
			attribute.Int("sandshell.exit_code", code))
	}
	failed(span, err)
	return code, err
}

// Close closes the box, and ends all spans.
func (b *Box) Close() error {
	err := b.Sandbox.Close()
	b.jobs.Wait() // they have ended with the box
	b.mu.Lock()
	unfinished := b.unfinished
	b.unfinished = map[*command]bool{}
	b.mu.Unlock()
	for c := range unfinished {
		c.end(nil, sandbox.ErrClosed)
	}
	return err
}

// A command is a span that has begun. As an io.Writer it counts the command's output.
type command struct {
	box   *Box
	span  trace.Span
	bytes atomic.Int64
	once  sync.Once
}

// begin begins the span of a command in a session or job.
func (b *Box) begin(ctx context.Context, name string) (context.Context, *command) {
	ctx, span := b.tracer.Start(ctx, name, trace.WithAttributes(
		attribute.String("sandshell.box", b.String())))
	c := &command{box: b, span: span}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unfinished[c] = true
	return ctx, c
}

func (c *command) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// end ends the span. res is nil if the command has none.
func (c *command) end(res *sandbox.Result, err error) {
	c.once.Do(func() {
		c.box.mu.Lock()
		delete(c.box.unfinished, c)
		c.box.mu.Unlock()
		state := sandbox.Running
		if res != nil {
			state = res.State
			c.span.SetAttributes(attribute.Float64("sandshell.duration", res.Duration.Seconds()))
		}
		if state == sandbox.Exited {
			c.span.SetAttributes(attribute.Int("sandshell.exit_code", res.ExitCode))
		}
		c.span.SetAttributes(attribute.String("sandshell.state", state.String()),
			attribute.Int64("sandshell.bytes", c.bytes.Load()))
		failed(c.span, err)
		c.span.End()
	})
}

// failed records why a command has failed.
func failed(span trace.Span, err error) {
	if err == nil {
		return
	}
	err = cause(err)
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
}

// cause returns an error without the words of the call that has failed, which have the command's
// text in them.
func cause(err error) error {
	if lost := new(sandbox.LostError); errors.As(err, &lost) {
		return lost
	}
	for _, known := range []error{sandbox.ErrTimeout, sandbox.ErrQuestion, sandbox.ErrClosed,
		sandbox.ErrBusy, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
