package tracing

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/sandshell/sandshell/sandbox"
)

// A session traces the commands of a session.
type session struct {
	tracer *tracer
	id     string
}

// Execute implements sandbox.SessionObserver.
func (s *session) Execute(ctx context.Context, _ string) (context.Context,
	sandbox.CommandObserver) {
	ctx, c := s.tracer.begin(ctx, "execute")
	c.Started(s.id)
	return ctx, c
}

// Input implements sandbox.SessionObserver.
func (s *session) Input(string, sandbox.InputKind) {}

// Resize implements sandbox.SessionObserver.
func (s *session) Resize(int, int) {}

// Close implements sandbox.SessionObserver.
func (s *session) Close() {}

// A command is the span of a command in a session or a job. As an io.Writer it counts the output.
type command struct {
	span  trace.Span
	bytes atomic.Int64
}

// begin begins the span of a command.
func (t *tracer) begin(ctx context.Context, name string) (context.Context, *command) {
	ctx, span := t.start(ctx, name)
	return ctx, &command{span: span}
}

// Started implements sandbox.JobObserver.
func (c *command) Started(id string) {
	c.span.SetAttributes(attribute.String("sandshell.session", id))
}

// Write implements io.Writer.
func (c *command) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// Input implements sandbox.JobObserver.
func (c *command) Input(string, sandbox.InputKind) {}

// Result implements sandbox.CommandObserver and sandbox.JobObserver.
func (c *command) Result(res *sandbox.Result) {
	if res.State == sandbox.Waiting {
		c.span.AddEvent("waiting", trace.WithAttributes(
			attribute.String("sandshell.awaits", res.Awaits.String()),
			attribute.Bool("sandshell.may_go_on", res.MayGoOn)))
	}
}

// End implements sandbox.CommandObserver and sandbox.JobObserver.
func (c *command) End(res *sandbox.Result, err error) {
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
	fail(c.span, err)
	c.span.End()
}
