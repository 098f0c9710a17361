package sandbox

import (
	"cmp"
	"context"
	"errors"
	"strings"
)

// An observedSession tells its observer.
type observedSession struct {
	Session
	box      *observed
	observer SessionObserver

	current    *observedCommand // the last one that has begun
	awaits     InputKind        // what it waits for, as far as is known
	rows, cols int              // of the terminal, as far as is known
}

// Unwrap returns the session that is observed.
func (s *observedSession) Unwrap() Session { return s.Session }

// observe returns the session that tells what goes on in s.
func (b *observed) observe(s Session, o SessionOptions) *observedSession {
	id := s.ID()
	b.opening.Lock()
	defer b.opening.Unlock()
	b.mu.Lock()
	known := b.sessions[id]
	b.mu.Unlock()
	if known != nil {
		return known
	}
	o.Rows, o.Cols = b.sizeOf(o)
	known = &observedSession{Session: s, box: b, rows: o.Rows, cols: o.Cols,
		observer: b.observer.Open(id, o)}
	b.mu.Lock()
	b.sessions[id] = known
	b.mu.Unlock()
	return known
}

// sizeOf returns the size of the terminal of a session or job that was opened with these options.
func (b *observed) sizeOf(o SessionOptions) (rows, cols int) {
	rows, cols = o.Rows, o.Cols
	if o.Like != nil {
		b.mu.Lock()
		if like := b.sessions[o.Like.ID()]; like != nil {
			rows, cols = cmp.Or(rows, like.rows), cmp.Or(cols, like.cols)
		}
		b.mu.Unlock()
	}
	return cmp.Or(rows, DefaultRows), cmp.Or(cols, DefaultCols)
}

// Session implements Sandbox.
func (b *observed) Session(id string) (Session, bool) {
	s, ok := b.Sandbox.Session(id)
	if !ok {
		return nil, false
	}
	return b.observedSession(s), true
}

// Sessions implements Sandbox.
func (b *observed) Sessions() []Session {
	sessions := b.Sandbox.Sessions()
	for i, s := range sessions {
		sessions[i] = b.observedSession(s)
	}
	return sessions
}

// observedSession returns s as it is observed.
func (b *observed) observedSession(s Session) Session {
	known := b.observe(s, NewSessionOptions())
	if known == b.main {
		return mainSession{known, s}
	}
	return known
}

// A mainSession is the main session by itself: its Close is not the sandbox's.
type mainSession struct {
	*observedSession
	inner Session
}

// Close implements Session.
func (s mainSession) Close() error { return s.closeBy(s.inner.Close) }

// An observedCommand is one Execute. It is unfinished as long as it is in observed.unfinished.
type observedCommand struct {
	CommandObserver
	box *observed
}

// Execute implements Session.
func (s *observedSession) Execute(ctx context.Context, command string,
	opts ...ExecOption) (*Result, error) {
	if ctx == nil {
		return s.Session.Execute(ctx, command, opts...) // which says so
	}
	ctx, observer := s.observer.Execute(ctx, command)
	c := &observedCommand{observer, s.box}
	s.box.mu.Lock()
	s.box.unfinished[c] = true
	previous, awaits := s.current, s.awaits
	s.current, s.awaits = c, 0
	s.box.mu.Unlock()
	res, err := s.Session.Execute(ctx, command, append(opts[:len(opts):len(opts)], Follow(c))...)
	if res != nil {
		previous.end(nil, nil) // or this one would not have been executed
		s.report(c, res, err)
		return res, err
	}
	c.end(nil, err)
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	if s.current == c { // the previous one may still be unfinished
		s.current, s.awaits = previous, awaits
	}
	return res, err
}

// report tells the observer what a call about c has returned. c may be nil.
func (s *observedSession) report(c *observedCommand, res *Result, err error) {
	if c == nil {
		return
	}
	if res != nil && res.State == Exited || errors.Is(err, ErrClosed) || errors.Is(err, ErrLost) {
		c.end(res, err)
		return
	}
	if res == nil {
		return
	}
	s.box.mu.Lock()
	if s.current == c {
		s.awaits = 0
		if res.State == Waiting {
			s.awaits = res.Awaits
		}
	}
	s.box.mu.Unlock()
	c.Result(res)
}

// end tells the observer, once, that c has ended. c may be nil.
func (c *observedCommand) end(res *Result, err error) {
	if c == nil {
		return
	}
	c.box.mu.Lock()
	first := c.box.unfinished[c]
	delete(c.box.unfinished, c)
	c.box.mu.Unlock()
	if first {
		c.End(res, err)
	}
}

// unfinished returns the command that a call is about; nil if there is none.
func (s *observedSession) unfinished() *observedCommand {
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	if !s.box.unfinished[s.current] {
		return nil
	}
	return s.current
}

// reportInput tells the observer of text that is typed to the unfinished command. It returns that
// command, or nil if there is none.
func (s *observedSession) reportInput(text string) *observedCommand {
	c := s.unfinished()
	if c == nil || text == "" {
		return c
	}
	s.box.mu.Lock()
	awaits := s.awaits
	if strings.ContainsAny(text, "\n\r\x04") {
		s.awaits = 0 // the next line may answer another question
	}
	s.box.mu.Unlock()
	s.observer.Input(text, awaits)
	return c
}

// Input implements Session.
func (s *observedSession) Input(ctx context.Context, text string,
	opts ...ExecOption) (*Result, error) {
	c := s.reportInput(text)
	res, err := s.Session.Input(ctx, text, opts...)
	s.report(c, res, err)
	return res, err
}

// Type implements Session.
func (s *observedSession) Type(ctx context.Context, text string) error {
	s.reportInput(text)
	return s.Session.Type(ctx, text)
}

// Wait implements Session.
func (s *observedSession) Wait(ctx context.Context, opts ...ExecOption) (*Result, error) {
	c := s.unfinished()
	res, err := s.Session.Wait(ctx, opts...)
	s.report(c, res, err)
	return res, err
}

// Interrupt implements Session.
func (s *observedSession) Interrupt(ctx context.Context, opts ...ExecOption) (*Result, error) {
	c := s.reportInput("\x03")
	res, err := s.Session.Interrupt(ctx, opts...)
	s.report(c, res, err)
	return res, err
}

// Resize implements Session.
func (s *observedSession) Resize(ctx context.Context, rows, cols int) error {
	err := s.Session.Resize(ctx, rows, cols)
	if err == nil {
		s.box.mu.Lock()
		s.rows, s.cols = rows, cols
		s.box.mu.Unlock()
		s.observer.Resize(rows, cols)
	}
	return err
}

// Close implements Session.
func (s *observedSession) Close() error { return s.closeBy(s.Session.Close) }

func (s *observedSession) closeBy(closeInner func() error) error {
	err := closeInner()
	s.unfinished().end(nil, ErrClosed)
	s.box.mu.Lock()
	delete(s.box.sessions, s.ID())
	s.box.mu.Unlock()
	s.observer.Close()
	return err
}
