package logging

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/internal/cause"
)

// A session logs what goes on in a session.
type session struct {
	observer *observer
	id       slog.Attr
}

// Execute implements sandbox.SessionObserver.
func (s *session) Execute(ctx context.Context, text string) (context.Context,
	sandbox.CommandObserver) {
	s.observer.record(ctx, slog.LevelDebug, "command begins", s.id, commandText(text))
	return ctx, s.observer.begin(ctx, "command", s.id)
}

// Input implements sandbox.SessionObserver.
func (s *session) Input(text string, awaits sandbox.InputKind) {
	s.observer.recordInput(context.Background(), s.id, text, awaits)
}

// Resize implements sandbox.SessionObserver.
func (s *session) Resize(rows, cols int) {
	s.observer.record(context.Background(), slog.LevelDebug, "terminal resized", s.id,
		slog.Int("rows", rows), slog.Int("cols", cols))
}

// Close implements sandbox.SessionObserver.
func (s *session) Close() {
	s.observer.record(context.Background(), slog.LevelInfo, "session closed", s.id)
}

func (o *observer) recordInput(ctx context.Context, id slog.Attr, text string,
	awaits sandbox.InputKind) {
	o.record(ctx, slog.LevelDebug, "input", id, slog.Int("length", len(text)),
		slog.String("awaits", awaits.String()))
}

// A command logs what becomes of a command in a session, or of a job. As an io.Writer it counts the
// output.
type command struct {
	observer *observer
	ctx      context.Context // of the call that began it, for the handler only
	what     string          // "command" or "job"
	id       slog.Attr       // of the session or the job; zero before the job has been started
	began    time.Time
	bytes    atomic.Int64
}

func (o *observer) begin(ctx context.Context, what string, id slog.Attr) *command {
	return &command{observer: o, ctx: context.WithoutCancel(ctx), what: what, id: id,
		began: time.Now()}
}

// Started implements sandbox.JobObserver.
func (c *command) Started(id string) {
	c.id = slog.String("job", id)
	c.observer.record(c.ctx, slog.LevelInfo, "job started", c.id)
}

// Write implements io.Writer.
func (c *command) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// Input implements sandbox.JobObserver.
func (c *command) Input(text string, awaits sandbox.InputKind) {
	c.observer.recordInput(c.ctx, c.id, text, awaits)
}

// Result implements sandbox.CommandObserver and sandbox.JobObserver.
func (c *command) Result(res *sandbox.Result) {
	state := slog.String("state", res.State.String())
	if res.State != sandbox.Waiting {
		c.observer.record(c.ctx, slog.LevelDebug, c.what+" goes on", c.id, state)
		return
	}
	c.observer.record(c.ctx, slog.LevelInfo, c.what+" waits", c.id, state,
		slog.String("awaits", res.Awaits.String()), slog.Bool("may_go_on", res.MayGoOn))
}

// End implements sandbox.CommandObserver and sandbox.JobObserver.
func (c *command) End(res *sandbox.Result, err error) {
	if c.id.Key == "" {
		level, attrs := withError(nil, err)
		c.observer.record(c.ctx, level, "job not started", attrs...)
		return
	}
	attrs, duration := []slog.Attr{c.id}, time.Since(c.began)
	if res != nil {
		duration = res.Duration
		if res.State == sandbox.Exited {
			attrs = append(attrs, slog.Int("exit_code", res.ExitCode))
		}
	}
	attrs = append(attrs, slog.Duration("duration", duration), slog.Int64("bytes", c.bytes.Load()))
	level, attrs := withError(attrs, err)
	c.observer.record(c.ctx, level, c.what+" ended", attrs...)
}

// withError returns the level and the attributes of a record about the end of a command. err may be
// nil.
func withError(attrs []slog.Attr, err error) (slog.Level, []slog.Attr) {
	if err == nil {
		return slog.LevelInfo, attrs
	}
	level := slog.LevelWarn
	switch {
	case errors.Is(err, sandbox.ErrLost):
		level = slog.LevelError
	case errors.Is(err, sandbox.ErrClosed):
		level = slog.LevelInfo
	}
	return level, append(attrs, slog.String("error", printable.Line(cause.Of(err).Error())))
}
