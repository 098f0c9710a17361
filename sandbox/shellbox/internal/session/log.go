package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// The functions below log each command at debug level. A command's text, its input and its output
// may hold secrets: only their lengths are logged.

// logBeginLocked gives the command its number, and logs its begin.
func (s *Session) logBeginLocked(c *command, what string) {
	c.number = s.box.commands.Add(1)
	s.logCommand(what, c, slog.Int("length", len(c.text)))
}

// logWaitingLocked logs that a call returns because the command waits for input.
func (s *Session) logWaitingLocked(c *command, kind sandbox.InputKind, mayGoOn bool) {
	s.logCommand("command waits", c, append(s.soFar(c, sandbox.Waiting,
		slog.String("awaits", kind.String())), slog.Bool("may_go_on", mayGoOn))...)
}

// logEndLocked logs once how the command has ended. r is its Result, or nil if it has none because
// of err.
func (s *Session) logEndLocked(c *command, r *sandbox.Result, err error) {
	if c.logged {
		return
	}
	c.logged = true
	switch {
	case r != nil:
		s.logCommand("command ended", c, s.soFar(c, r.State, slog.Int("status", r.ExitCode))...)
	case err != nil:
		s.logCommand("command cut short", c, s.soFar(c, sandbox.Running, slog.Any("error", err))...)
	default:
		s.logCommand("command never ran", c)
	}
}

// soFar returns the attributes of a command that has begun.
func (s *Session) soFar(c *command, state sandbox.State, more slog.Attr) []slog.Attr {
	return []slog.Attr{slog.String("state", state.String()), more, slog.Int64("bytes", c.printed),
		slog.Duration("duration", time.Since(c.began))}
}

func (s *Session) logCommand(what string, c *command, attrs ...slog.Attr) {
	log := s.box.Log
	if ctx := context.Background(); log.Enabled(ctx, slog.LevelDebug) {
		log.LogAttrs(ctx, slog.LevelDebug, what, append(
			[]slog.Attr{slog.String("session", s.id), slog.Int64("command", c.number)},
			attrs...)...)
	}
}
