package session

import (
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/waiting"
	"strings"
	"time"
)

// typeLocked types text to the unfinished command. If the command has not begun, the text is typed
// when it begins. If the command is over, the text counts as unread.
func (s *Session) typeLocked(text string) {
	c := s.cmd
	if c == nil || text == "" {
		return
	}
	if c.phase.Over() {
		c.typed += len(text)
		if c.result != nil {
			c.result.Unread += len(text)
		}
		return
	}
	c.typed += len(text)
	c.active = time.Now()
	c.askLocked(waiting.Question{})
	c.printedAtLine, c.inputDue = -1, c.active.Add(unanswered)
	if strings.ContainsAny(text, "\n\r") {
		c.printedAtLine = c.printed
	}
	// The input ends the program's read, so the program must get a turn.
	if w := c.lastWait; w.Turns > 0 && (w.Modes.Raw || strings.ContainsAny(text, "\n\r\x04")) {
		c.inputDue = c.active.Add(undelivered)
	}
	// The interrupt key would cut the line that the shell is reading, and the shell would execute
	// the rest.
	if !s.sh.phase.TakesCommands() || c.phase == phase.Queued ||
		c.phase.OnPipe() && c.seq != unknownSeq {
		c.typedAhead += text
		return
	}
	s.typeNowLocked(c, text)
}

// typeNowLocked types text to a command that has begun.
func (s *Session) typeNowLocked(c *command, text string) {
	if strings.ContainsAny(text, "\x03\x1a\x1c") {
		c.interruptTyped = true
	}
	s.sh.keys.Write(text)
}
