package session

import (
	"fmt"

	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// advanceLocked moves c to the phase that follows at e. It reports false if e cannot happen.
func (s *Session) advanceLocked(c *command, e phase.CommandEvent) bool {
	ok := c.phase.Advance(e)
	if !ok {
		s.logFault(c.phase, e, "command", c.number)
	}
	return ok
}

// advanceShellLocked moves sh to the phase that follows at e.
func (s *Session) advanceShellLocked(sh *shell, e phase.ShellEvent) {
	if !sh.phase.Advance(e) {
		s.logFault(sh.phase, e, "pid", sh.pid)
	}
}

func (s *Session) logFault(phase, event fmt.Stringer, attrs ...any) {
	s.box.Log.Error("the engine is at fault: an event that cannot happen", append(attrs,
		"session", s.id, "phase", phase.String(), "event", event.String())...)
}
