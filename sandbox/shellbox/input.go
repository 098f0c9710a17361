package shellbox

import (
	"strings"
	"time"
)

// typeLocked types text to the unfinished command. Text for a command that has not begun is typed
// when it begins.
func (s *session) typeLocked(text string) {
	c := s.cmd
	if text == "" || c == nil || c.phase.over() {
		if c != nil {
			c.typed += len(text)
			if c.result != nil {
				c.result.Unread += len(text)
			}
		}
		return
	}
	c.typed += len(text)
	c.active = time.Now()
	if c.question != 0 {
		c.question = 0
		c.changed.Send()
	}
	c.printedAtLine, c.inputDue = -1, c.active.Add(unanswered)
	if strings.ContainsAny(text, "\n\r") {
		c.printedAtLine = c.printed
	}
	// A read ends with the key or the line, and that takes a turn.
	if w := c.lastWait; w.Turns > 0 && (w.Modes.Raw || strings.ContainsAny(text, "\n\r\x04")) {
		c.inputDue = c.active.Add(undelivered)
	}
	// The interrupt key would cut the line that the shell is reading, and the shell would execute
	// the rest.
	if !s.ready || c.phase == queued || c.phase.onPipe() && !s.seqUnknown {
		c.typedAhead += text
		return
	}
	s.typeNowLocked(c, text)
}

// typeNowLocked types text to a command that has begun.
func (s *session) typeNowLocked(c *command, text string) {
	if strings.ContainsAny(text, "\x03\x1a\x1c") {
		c.interruptTyped = true
	}
	s.sh.keys.write(text)
}
