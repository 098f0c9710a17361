package shellbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sandshell/sandshell/sandbox"
)

// Execute implements sandbox.Session.
func (s *session) Execute(ctx context.Context, command string, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	r, err := s.execute(ctx, command, false, sandbox.NewExecOptions(opts...))
	if err != nil {
		err = fmt.Errorf("execute %s in %s: %w", abridged(command), s.id, err)
	}
	return r, err
}

func (s *session) execute(ctx context.Context, text string, once bool, o sandbox.ExecOptions) (*sandbox.Result, error) {
	if strings.ContainsRune(text, 0) {
		return nil, errors.New("a command cannot hold a NUL byte: write it as \\0 for printf, or copy a file in")
	}
	c := newCommand(text, once)
	s.mu.Lock()
	err := s.err
	if err == nil && s.cmd != nil {
		err = sandbox.ErrBusy
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	s.cmd, s.unseen = c, nil
	ready := s.ready
	s.mu.Unlock()

	select { // a fresh shell may be starting
	case <-ready:
	case <-ctx.Done():
		s.mu.Lock()
		s.cmd = nil
		s.mu.Unlock()
		return nil, ctx.Err()
	case <-s.gone:
		return nil, s.over()
	}
	return s.await(ctx, c, o, onEndKill, func() {
		s.seq++
		lines := s.shell.commandLines(s.seq, s.status, text, once)
		if s.killed { // the interrupt key may be in the way, as a character, if the terminal was in raw mode
			lines = append(s.shell.tidyLine(), lines...)
		}
		s.killed = false
		c.send(s.typist, lines)
	})
}

// Input implements sandbox.Session.
func (s *session) Input(ctx context.Context, text string, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return s.resume(ctx, "input to", opts, onEndKill, func(c *command) {
		if text == "" {
			return
		}
		c.active = time.Now()
		if strings.ContainsAny(text[len(text)-1:], "\n\r\x03\x04\x1a\x1c") || c.answered.kind == sandbox.Keys {
			c.inputAt = c.active
		} else {
			c.answered = identity{} // an unfinished line: the program waits on
		}
		if !c.typed { // Execute is about to type the command: after that
			c.ahead = append(c.ahead, text...)
			return
		}
		s.typist.write([]byte(text))
	})
}

// Wait implements sandbox.Session.
func (s *session) Wait(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return s.resume(ctx, "wait for", opts, onEndLeave, func(c *command) {
		if c.inputAt.IsZero() {
			c.answered = identity{}
		}
	})
}

// Interrupt implements sandbox.Session.
func (s *session) Interrupt(ctx context.Context, opts ...sandbox.ExecOption) (*sandbox.Result, error) {
	return s.resume(ctx, "interrupt", opts, killNow, func(*command) {})
}

// A mode says whether a call kills the command.
type mode int

const (
	onEndKill  mode = iota // when ctx ends
	onEndLeave             // when ctx ends, the command goes on
	killNow
)

// resume goes on with the unfinished command; act is called with s.mu held.
func (s *session) resume(ctx context.Context, verb string, opts []sandbox.ExecOption, m mode, act func(*command)) (*sandbox.Result, error) {
	s.mu.Lock()
	err, c := s.err, s.cmd
	if c == nil && m != onEndKill {
		c = s.unseen
	}
	if err == nil && c == nil {
		err = sandbox.ErrIdle
	}
	if err == nil {
		err = ctx.Err()
	}
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb, s.id, err)
	}
	r, err := s.await(ctx, c, sandbox.NewExecOptions(opts...), m, func() { act(c) })
	if err != nil {
		err = fmt.Errorf("%s %s in %s: %w", verb, abridged(c.text), s.id, err)
	}
	return r, err
}

// await begins a call with begin, under s.mu, and waits for what ends it.
func (s *session) await(ctx context.Context, c *command, o sandbox.ExecOptions, m mode, begin func()) (*sandbox.Result, error) {
	var timeout, yield <-chan time.Time
	if o.Timeout > 0 {
		t := time.NewTimer(o.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	if o.Yield > 0 {
		t := time.NewTimer(o.Yield)
		defer t.Stop()
		yield = t.C
	}
	if o.Tee != nil {
		c.tee.set(o.Tee)
		defer c.tee.set(nil)
	}
	s.mu.Lock()
	c.out.kept.Max = max(c.out.kept.Max, o.MaxOutput)
	c.match = nil
	select {
	case <-c.matched:
	default:
	}
	if p := c.out.expect(o.Until, o.MaxOutput); p != nil {
		c.setMatch(p)
	}
	if s.cmd == c { // else the command has ended meanwhile
		begin()
	}
	c.calls++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.calls--; c.calls == 0 && c.result != nil && !c.told && s.cmd == nil {
			s.unseen = c // the command ended just as this call returned for another reason
		}
	}()

	watch := newWatch(s, c)
	watch.attended = o.Attended
	defer watch.stop()
	canceled, done := ctx.Done(), (<-chan struct{})(c.done)
	var gone chan struct{} // closed when the command that this call kills is gone
	var reason error       // why it kills it
	kill := func(why error) {
		reason, timeout, canceled = why, nil, nil
		watch.killed = true
		watch.in(quietMin)
		ended := make(chan struct{})
		gone = ended
		s.spawn(func() { s.kill(c); close(ended) })
	}
	if m == killNow {
		kill(nil)
		canceled = ctx.Done()
	}
	for {
		select {
		case <-done:
			if gone != nil {
				done = gone // wait for the command's descendants too
				gone = nil
				continue
			}
			if len(c.matched) > 0 {
				done = nil // Until has matched before the end; the next call returns the end
				continue
			}
			if o.Tee != nil {
				c.tee.set(nil)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.finish(c, o.MaxOutput), reason
		case <-c.matched:
			s.mu.Lock()
			p := c.match
			c.match = nil
			s.mu.Unlock()
			if p == nil {
				continue
			}
			return &sandbox.Result{State: sandbox.Running, Output: p.text, Omitted: p.omitted, Matched: p.matched, Duration: time.Since(c.began)}, nil
		case <-watch.timer.C:
			watch.look()
		case kind := <-watch.verdict:
			if r := s.waiting(c, watch, kind, o.MaxOutput); r != nil {
				return r, nil
			}
		case <-yield:
			return s.leave(c, o, nil)
		case <-timeout:
			kill(sandbox.ErrTimeout)
		case <-canceled:
			if m != onEndKill {
				return s.leave(c, o, ctx.Err())
			}
			kill(ctx.Err())
		case <-s.gone:
			s.mu.Lock()
			defer s.mu.Unlock()
			return c.partial(sandbox.Running, 0, o.MaxOutput), s.err
		}
	}
}

// leave returns what there is of the command's output, beside err; the command goes on.
func (s *session) leave(c *command, o sandbox.ExecOptions, err error) (*sandbox.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.result != nil {
		return s.finish(c, o.MaxOutput), nil
	}
	return c.partial(sandbox.Running, 0, o.MaxOutput), err
}

// finish returns the ended command's Result; s.mu is held.
func (s *session) finish(c *command, max int) *sandbox.Result {
	r := c.final(max)
	c.told = true
	if s.unseen == c {
		s.unseen = nil
	}
	r.Restarted = r.Restarted || s.restarted
	s.restarted = false
	return r
}

// abridged returns command quoted, short enough for an error message.
func abridged(command string) string {
	if len(command) > 60 {
		command = command[:57] + "..."
	}
	return fmt.Sprintf("%q", command)
}
