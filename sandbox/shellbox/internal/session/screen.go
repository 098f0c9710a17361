package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sandshell/sandshell/internal/terminal"
	"github.com/sandshell/sandshell/sandbox"
)

// showLocked puts text, which was written to c.out last, on the screen. If the text queries the
// terminal, showLocked types the answer, as a terminal does.
func (s *Session) showLocked(c *command, text []byte) {
	shown := 0
	for _, query := range c.out.Queries() {
		s.screen.Write(text[shown:query.End])
		shown = query.End
		answer := ""
		switch query.Kind {
		case terminal.QueryStatus:
			answer = "\x1b[0n" // it works
		case terminal.QueryAttributes:
			answer = "\x1b[?6c" // a VT102
		case terminal.QueryCursor:
			_, row, col := terminal.Render(s.screen.Bytes(), s.rows, s.cols)
			answer = fmt.Sprintf("\x1b[%d;%dR", row+1, col+1)
		}
		c.terminalReplied = true
		c.active = time.Now()
		c.sh.keys.Write(answer)
	}
	s.screen.Write(text[shown:])
}

// checkLocked returns why a call cannot reach the session.
func (s *Session) checkLocked(ctx context.Context) error { return cmp.Or(s.err, CheckContext(ctx)) }

// CheckSize refuses sizes that a terminal cannot have.
func CheckSize(rows, cols int) error {
	if rows <= 0 || cols <= 0 || rows > 10000 || cols > 10000 {
		return fmt.Errorf("a terminal cannot have %d rows and %d columns: give 1 to 10000 each",
			rows, cols)
	}
	return nil
}

// Screen implements sandbox.Session.
func (s *Session) Screen(ctx context.Context) (*sandbox.Screen, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("screen of %s: %w", s.id, err)
	}
	defer leave()
	s.mu.Lock()
	err, raw, rows, cols := s.checkLocked(ctx), s.screen.Bytes(), s.rows, s.cols
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("screen of %s: %w", s.id, err)
	}
	lines, row, col := terminal.Render(raw, rows, cols)
	return &sandbox.Screen{Lines: lines, Row: row, Col: col}, nil
}

// Resize implements sandbox.Session.
func (s *Session) Resize(ctx context.Context, rows, cols int) error {
	if err := CheckSize(rows, cols); err != nil {
		return fmt.Errorf("resize %s: %w", s.id, err)
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return fmt.Errorf("resize %s: %w", s.id, err)
	}
	defer leave()
	s.mu.Lock()
	err, sh := s.checkLocked(ctx), s.sh
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

// Resize implements sandbox.Job.
func (j *Job) Resize(ctx context.Context, rows, cols int) error {
	err := CheckSize(rows, cols)
	if err == nil {
		err = j.check(ctx)
	}
	if err == nil && j.session.opts.Pipes {
		err = fmt.Errorf("%w: it has pipes and no terminal", errors.ErrUnsupported)
	}
	if err == nil {
		s := j.session
		s.mu.Lock()
		s.rows, s.cols = rows, cols
		sh := s.sh
		s.mu.Unlock()
		err = sh.proc.Resize(rows, cols)
		if err != nil && j.HasEnded() {
			err = os.ErrProcessDone
		}
	}
	if err != nil {
		return fmt.Errorf("resize %s: %w", j.session.id, err)
	}
	return nil
}
