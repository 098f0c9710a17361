// Package tracing has an OpenTelemetry span for each command of a sandbox.
//
// [New] wraps any [sandbox.Sandbox]. Spans are named for the method: "execute", "background" and
// "run". A span of Execute begins with that call, under the span of its ctx, and lasts until the
// command has ended, whichever call says so. What the call does, such as requests to the Docker
// engine, belongs to its span. A span of Background lasts until the job's end.
//
// Attributes:
//
//	sandshell.box        string  the sandbox's String
//	sandshell.session    string  the session's id, or the job's; not of a Run
//	sandshell.state      string  exited; running if no call has told how the command ended
//	sandshell.exit_code  int     if it has exited
//	sandshell.bytes      int     of output; not of a Run
//	sandshell.duration   float64 in seconds, as the Result has it; not of a Run
//
// A question is an event "waiting", with sandshell.awaits (line, secret or keys) and the bool
// sandshell.may_go_on. The error with which a command ends (a timeout, the box's end) is recorded
// and is the span's status; an exit status other than 0 is not an error. A span has neither the
// text of a command nor its input or output.
//
// All methods may be called from several goroutines.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/internal/cause"
)

const name = "github.com/sandshell/sandshell/sandbox/tracing"

// New returns box as a Sandbox that is traced. Use it in the place of box, and close it instead of
// box: Close ends all spans. [sandbox.As] finds what box is beyond a Sandbox. If provider is nil,
// New uses OpenTelemetry's global one (otel.GetTracerProvider), which records nothing until the
// program has set one. New panics if box is nil.
func New(box sandbox.Sandbox, provider trace.TracerProvider) sandbox.Sandbox {
	if box == nil {
		panic("tracing: New: the box is nil")
	}
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return sandbox.Observe(box, &tracer{box.String(), provider.Tracer(name)})
}

// A tracer is the Observer of a box that is traced.
type tracer struct {
	box  string // the sandbox's String
	otel trace.Tracer
}

// start begins a span.
func (t *tracer) start(ctx context.Context, name string) (context.Context, trace.Span) {
	return t.otel.Start(ctx, name, trace.WithAttributes(attribute.String("sandshell.box", t.box)))
}

// Open implements sandbox.Observer.
func (t *tracer) Open(id string, _ sandbox.SessionOptions) sandbox.SessionObserver {
	return &session{t, id}
}

// Background implements sandbox.Observer.
func (t *tracer) Background(ctx context.Context, _ string,
	_ sandbox.SessionOptions) (context.Context, sandbox.JobObserver) {
	return t.begin(ctx, "background")
}

// Run implements sandbox.Observer.
func (t *tracer) Run(ctx context.Context, _ *sandbox.Cmd) (context.Context, func(int, error)) {
	ctx, span := t.start(ctx, "run")
	return ctx, func(code int, err error) {
		if code >= 0 {
			span.SetAttributes(attribute.String("sandshell.state", sandbox.Exited.String()),
				attribute.Int("sandshell.exit_code", code))
		}
		fail(span, err)
		span.End()
	}
}

// Close implements sandbox.Observer.
func (t *tracer) Close() error { return nil }

// fail records why a command has failed. It does nothing if err is nil.
func fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	err = cause.Of(err)
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
}
