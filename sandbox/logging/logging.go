// Package logging writes what goes on in a sandbox to a *slog.Logger.
//
// [New] wraps any [sandbox.Sandbox]. These are the records:
//
//	level  message            attributes
//	Info   session opened     session
//	Debug  command begins     session, command
//	Info   command waits      session, state, awaits, may_go_on
//	Debug  command goes on    session, state
//	Info   command ended      session, exit_code, duration, bytes
//	Debug  input              session or job, length, awaits
//	Debug  terminal resized   session, rows, cols
//	Info   session closed     session
//	Debug  job begins         command
//	Info   job started        job
//	Info   job waits          job, state, awaits, may_go_on
//	Debug  job goes on        job, state
//	Info   job ended          job, exit_code, duration, bytes
//	Debug  program begins     program, args
//	Info   program ended      program, exit_code, duration
//	Info   box closed
//
// Each record also has the attribute box, which is the sandbox's String. session and job are ids.
// program is the number of a Run. exit_code is there only if the command has exited, and bytes
// counts its output. length is the number of bytes that were typed.
//
// If a command, a job or a program ends with an error, its last record has the attribute error. Its
// level is Error if the sandbox is lost, Info if the session or the sandbox was closed, and Warn
// otherwise, as at a timeout. A job that cannot be started has the record "job not started" in the
// place of "job started". An exit status other than 0 is not an error.
//
// # Secrets
//
// What was typed and what was printed is never logged. The text of a command may hold secrets. It
// is in records of level Debug only, cut to 1 KiB, with control characters escaped. From level Info
// on, no record holds a command's text or a program's arguments, and neither do the errors.
//
// # The handler
//
// The calls of the sandbox wait for the logger's handler. A handler that panics gets no more
// records, and Close returns the panic as an error. A handler gets the context of the call that
// began the command, for records of that command, so that it can add the ids of a trace.
package logging

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sandshell/sandshell/internal/guard"
	"github.com/sandshell/sandshell/internal/printable"
	"github.com/sandshell/sandshell/sandbox"
)

// New returns box as a Sandbox that is logged. Use it in the place of box, and close it instead of
// box. [sandbox.As] finds what box is beyond a Sandbox. All methods may be called from several
// goroutines. New panics if box or logger is nil.
func New(box sandbox.Sandbox, logger *slog.Logger) sandbox.Sandbox {
	switch {
	case box == nil:
		panic("logging: New: the box is nil")
	case logger == nil:
		panic("logging: New: the logger is nil")
	}
	return sandbox.Observe(box, &observer{log: logger.With("box", box.String())})
}

// An observer is the Observer of a box that is logged.
type observer struct {
	log  *slog.Logger
	runs atomic.Int64 // counts the calls of Run

	mu     sync.Mutex
	failed error // of a handler that panicked
}

var _ sandbox.Observer = (*observer)(nil)

// record logs a record, unless the handler has panicked before.
func (o *observer) record(ctx context.Context, level slog.Level, message string,
	attrs ...slog.Attr) {
	o.mu.Lock()
	failed := o.failed
	o.mu.Unlock()
	if failed != nil {
		return
	}
	err := guard.Call("the logger's handler", func() error {
		o.log.LogAttrs(ctx, level, message, attrs...)
		return nil
	})
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.failed = err
	}
}

// Open implements sandbox.Observer.
func (o *observer) Open(id string, _ sandbox.SessionOptions) sandbox.SessionObserver {
	s := &session{o, slog.String("session", id)}
	o.record(context.Background(), slog.LevelInfo, "session opened", s.id)
	return s
}

// Background implements sandbox.Observer.
func (o *observer) Background(ctx context.Context, text string,
	_ sandbox.SessionOptions) (context.Context, sandbox.JobObserver) {
	o.record(ctx, slog.LevelDebug, "job begins", commandText(text))
	return ctx, o.begin(ctx, "job", slog.Attr{})
}

// Run implements sandbox.Observer.
func (o *observer) Run(ctx context.Context, cmd *sandbox.Cmd) (context.Context, func(int, error)) {
	program, began := slog.Int64("program", o.runs.Add(1)), time.Now()
	args := slices.Clone(cmd.Args)
	for i, arg := range args {
		args[i] = shown(arg)
	}
	o.record(ctx, slog.LevelDebug, "program begins", program, slog.Any("args", args))
	return ctx, func(code int, err error) {
		attrs := []slog.Attr{program}
		if code >= 0 {
			attrs = append(attrs, slog.Int("exit_code", code))
		}
		attrs = append(attrs, slog.Duration("duration", time.Since(began)))
		level, attrs := withError(attrs, err)
		o.record(ctx, level, "program ended", attrs...)
	}
}

// Close implements sandbox.Observer.
func (o *observer) Close() error {
	o.record(context.Background(), slog.LevelInfo, "box closed")
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// mostText is how many bytes of a command's text a record has.
const mostText = 1 << 10

// commandText returns the attribute with a command's text.
func commandText(text string) slog.Attr { return slog.String("command", shown(text)) }

// shown returns the beginning of a text, fit to be shown.
func shown(text string) string {
	if len(text) > mostText {
		end := mostText
		for end > mostText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return printable.Text(text)
}
