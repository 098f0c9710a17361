package shellbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// showLocked puts output on the screen that the command's cleaner has just had. It answers the
// output's queries as a terminal does, by typing.
func (s *session) showLocked(c *command, text []byte) {
	shown := 0
	for _, query := range c.out.Queries() {
		s.screen.Write(text[shown:query.At])
		shown = query.At
		answer := ""
		switch query.Asks {
		case terminal.Status:
			answer = "\x1b[0n" // it works
		case terminal.Attributes:
			answer = "\x1b[?6c" // a VT102
		case terminal.Cursor:
			_, row, col := terminal.Render(s.screen.Bytes(), s.rows, s.cols)
			answer = fmt.Sprintf("\x1b[%d;%dR", row+1, col+1)
		}
		c.terminalReplied = true
		c.active = time.Now()
		c.sh.keys.write(answer)
	}
	s.screen.Write(text[shown:])
}

// Screen implements sandbox.Session.
func (s *session) Screen(ctx context.Context) (*sandbox.Screen, error) {
	s.mu.Lock()
	err, raw, rows, cols := s.err, s.screen.Bytes(), s.rows, s.cols
	s.mu.Unlock()
	if err == nil {
		err = checkContext(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("screen of %s: %w", s.id, err)
	}
	lines, row, col := terminal.Render(raw, rows, cols)
	return &sandbox.Screen{Lines: lines, Row: row, Col: col}, nil
}

// Resize implements sandbox.Session.
func (s *session) Resize(ctx context.Context, rows, cols int) error {
	if rows <= 0 || cols <= 0 || rows > 10000 || cols > 10000 {
		return fmt.Errorf("resize %s to %d rows and %d columns: give 1 to 10000 each", s.id, rows,
			cols)
	}
	s.mu.Lock()
	err, sh := s.err, s.sh
	if err == nil {
		err = checkContext(ctx)
	}
	if err == nil {
		s.rows, s.cols = rows, cols
	}
	s.mu.Unlock()
	if err == nil {
		if err = sh.proc.Resize(rows, cols); !errors.Is(err, errors.ErrUnsupported) {
			err = nil // the shell has just ended: start gives the next one this size
		}
	}
	if err != nil {
		return fmt.Errorf("resize %s: %w", s.id, err)
	}
	return nil
}
