package e2b

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/broadcast"
)

const (
	// maxPart bounds the input in one message, in bytes.
	maxPart = 1 << 20
	// closeLimit bounds the call that closes a program's input.
	closeLimit = 10 * time.Second
)

// A stdin is the standard input of a program. Write returns before the program has the data: what
// is written meanwhile goes in one message.
type stdin struct {
	client *Client
	pid    uint32
	ctx    context.Context // ends with the input
	cancel context.CancelFunc

	mu      sync.Mutex
	changed broadcast.Signal
	waiting []byte
	closed  bool  // no more comes
	err     error // why nothing can be sent any more

	sent     chan struct{} // closed when all is sent
	boxClose sync.Once
}

func newStdin(c *Client, pid uint32, unary bool) *stdin {
	ctx, cancel := context.WithCancel(context.Background())
	s := &stdin{client: c, pid: pid, ctx: ctx, cancel: cancel, sent: make(chan struct{})}
	send := s.asStream
	if unary {
		send = s.inCalls
	}
	go func() {
		defer close(s.sent)
		err := send()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && s.err == nil {
			s.err = err
		}
		s.changed.Send()
	}()
	return s
}

// Write implements io.Writer.
func (s *stdin) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) >= maxPart && s.err == nil && !s.closed {
		changed := s.changed.Wait()
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.closed:
		return 0, io.ErrClosedPipe
	}
	s.waiting = append(s.waiting, p...)
	s.changed.Send()
	return len(p), nil
}

// next returns what waits to be sent. At the end it is io.EOF.
func (s *stdin) next() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && !s.closed && s.err == nil {
		changed := s.changed.Wait()
		s.mu.Unlock()
		<-changed
		s.mu.Lock()
	}
	switch {
	case s.err != nil:
		return nil, s.err
	case len(s.waiting) == 0:
		return nil, io.EOF
	}
	part := s.waiting[:min(len(s.waiting), maxPart)]
	s.waiting = s.waiting[len(part):]
	s.changed.Send()
	return part, nil
}

// inCalls sends the input in calls.
func (s *stdin) inCalls() error {
	for {
		part, err := s.next()
		if err != nil {
			return atEnd(err)
		}
		if err := s.client.Call(s.ctx, ProcessService+"SendInput", &SendInputRequest{
			Process: &Selector{PID: s.pid}, Input: &Input{Stdin: part}}, &Empty{}); err != nil {
			return err
		}
	}
}

func atEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// asStream sends the input as one stream.
func (s *stdin) asStream() error {
	body, frames := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.client.Upload(s.ctx, ProcessService+"StreamInput", body, &Empty{})
		body.CloseWithError(fmt.Errorf("the stream of the program's input has ended: %w",
			errors.Join(err, io.ErrClosedPipe)))
		done <- err
	}()
	err := s.writeFrames(frames)
	frames.CloseWithError(atEnd(err)) // nil is io.EOF
	return errors.Join(atEnd(err), <-done)
}

func (s *stdin) writeFrames(to io.Writer) error {
	m := &StreamInputRequest{Start: &ProcessRequest{Process: &Selector{PID: s.pid}}}
	for {
		data, err := s.client.codec().Marshal(m)
		if err != nil {
			return err
		}
		if _, err := to.Write(AppendFrame(nil, data)); err != nil {
			return err
		}
		part, err := s.next()
		if err != nil {
			return err
		}
		m = &StreamInputRequest{Data: &InputData{Input: &Input{Stdin: part}}}
	}
}

// Close ends the program's input when it has got what was written.
func (s *stdin) Close() error {
	s.mu.Lock()
	s.closed = true
	s.changed.Send()
	s.mu.Unlock()
	<-s.sent
	return s.closeBoxEnd()
}

// abandon ends the sending of what has not been sent.
func (s *stdin) abandon() {
	s.mu.Lock()
	s.closed = true
	if s.err == nil {
		s.err = io.ErrClosedPipe
	}
	s.changed.Send()
	s.mu.Unlock()
	s.cancel()
	<-s.sent
}

// closeBoxEnd tells the sandbox that no more input comes, once. A program that has ended is not
// found, which is no error.
func (s *stdin) closeBoxEnd() (err error) {
	s.boxClose.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		err = s.client.Call(ctx, ProcessService+"CloseStdin", &ProcessRequest{
			Process: &Selector{PID: s.pid}}, &Empty{})
		var e *Error
		if errors.As(err, &e) && e.Code == NotFound {
			err = nil
		}
	})
	return err
}
