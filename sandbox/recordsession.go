package sandbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// A recordedSession writes down what goes on in a session.
type recordedSession struct {
	Session
	track *track

	mu      sync.Mutex
	current *recordedCommand // the last one that was begun
	// the command waits for a line that is echoed: what is typed next is no secret
	line bool
}

// A recordedCommand is one Execute.
type recordedCommand struct {
	began time.Time
	ended bool
}

// Execute implements Session.
func (s *recordedSession) Execute(ctx context.Context, command string,
	opts ...ExecOption) (*Result, error) {
	c := &recordedCommand{began: time.Now()}
	s.mu.Lock()
	before := s.current
	s.current, s.line = c, false
	s.mu.Unlock()
	s.track.begin(command)
	res, err := s.Session.Execute(ctx, command, append(opts[:len(opts):len(opts)],
		Follow(s.track))...)
	if res != nil {
		if before != nil {
			s.unseen(before)
		}
		s.saw(c, res)
		return res, err
	}
	s.track.end("not executed: " + fmt.Sprint(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == c { // an earlier command may still be there
		s.current = before
	}
	return res, err
}

// saw takes a Result of command c.
func (s *recordedSession) saw(c *recordedCommand, res *Result) {
	if c == nil || res == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == c {
		s.line = res.State == Waiting && res.Awaits == Line
	}
	if res.State == Exited && !c.ended {
		c.ended = true
		s.track.end(fmt.Sprintf("exit status %d after %.3f s", res.ExitCode,
			time.Since(c.began).Seconds()))
	}
}

// unseen ends a command that no Result has said the end of: another has been begun since.
func (s *recordedSession) unseen(c *recordedCommand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.ended {
		c.ended = true
		s.track.end("the command before had ended, unseen")
	}
}

// unfinished returns the command that a call is about; nil if there is none.
func (s *recordedSession) unfinished() *recordedCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.ended {
		return nil
	}
	return s.current
}

// typed writes down what is typed, as far as it is known to be no secret.
func (s *recordedSession) typed(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.ended || text == "" {
		return
	}
	shown := ""
	switch end := strings.IndexAny(text, "\n\r\x04"); {
	case s.line && end >= 0:
		shown, s.line = text[:end+1], false // the next line may answer another question
	case s.line:
		shown = text
	case len(text) == 1 && text[0] < ' ':
		shown = text
	}
	s.track.input(shown)
}

// Input implements Session.
func (s *recordedSession) Input(ctx context.Context, text string,
	opts ...ExecOption) (*Result, error) {
	c := s.unfinished()
	s.typed(text)
	res, err := s.Session.Input(ctx, text, opts...)
	s.saw(c, res)
	return res, err
}

// Type implements Session.
func (s *recordedSession) Type(ctx context.Context, text string) error {
	s.typed(text)
	return s.Session.Type(ctx, text)
}

// Wait implements Session.
func (s *recordedSession) Wait(ctx context.Context, opts ...ExecOption) (*Result, error) {
	c := s.unfinished()
	res, err := s.Session.Wait(ctx, opts...)
	s.saw(c, res)
	return res, err
}

// Interrupt implements Session.
func (s *recordedSession) Interrupt(ctx context.Context, opts ...ExecOption) (*Result, error) {
	c := s.unfinished()
	s.typed("\x03")
	res, err := s.Session.Interrupt(ctx, opts...)
	s.saw(c, res)
	return res, err
}

// Resize implements Session.
func (s *recordedSession) Resize(ctx context.Context, rows, cols int) error {
	err := s.Session.Resize(ctx, rows, cols)
	if err == nil {
		s.track.resize(rows, cols)
	}
	return err
}

// Close implements Session. The main session's is not called: Close closes the whole box.
func (s *recordedSession) Close() error {
	err := s.Session.Close()
	s.track.leave()
	return err
}
