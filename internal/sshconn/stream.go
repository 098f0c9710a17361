package sshconn

import (
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A Stream is an SSH channel whose reads and writes return as soon as it is closed on this side,
// whatever the server does: x/crypto's go on until the server has answered, which it does not do
// while a program leaves its input unread, or when it is no longer there.
type Stream struct {
	Channel  ssh.Channel
	Out, Err *Pump  // what comes on the channel, and on its standard error
	OnClose    func() // called by Close; nil is nothing
	// Credit is how many bytes more are sure to fit into the server's window: set it, if at all,
	// before the first Write.
	Credit int

	on       *Group // waits for the stream's goroutines
	closed   chan struct{}
	once     sync.Once
	writing  chan struct{} // held by the one write under way
	ended    bool          // end of input has been sent; guarded by writing, as is Credit
	deadline deadline      // of writes
}

// FirstCredit is half of the window that OpenSSH's server (CHAN_SES_WINDOW_DEFAULT,
// CHAN_TCP_WINDOW_DEFAULT) and x/crypto's give a channel. What fits into it is written without a
// goroutine that might be left behind, which makes a short line some 15 µs faster. Most sessions
// type less than that in all. x/crypto does not tell how much of the window the server has given
// back.
const FirstCredit = 1 << 20

// KnowsCredit reports whether a server is one of those.
func KnowsCredit(version string) bool {
	return strings.HasPrefix(version, "SSH-2.0-OpenSSH_") ||
		strings.HasPrefix(version, "SSH-2.0-Go")
}

// NewStream makes a stream of a channel. on waits for the stream's goroutines; when on is stopped,
// the stream ends.
func NewStream(ch ssh.Channel, on *Group) *Stream {
	s := &Stream{Channel: ch, on: on, closed: make(chan struct{}), writing: make(chan struct{}, 1),
		deadline: makeDeadline()}
	s.Out = newPump(ch, on, s.closed)
	s.Err = newPump(ch.Stderr(), on, s.closed)
	return s
}

// Write writes all of p, in packets. After an error or a deadline, nobody knows how many of the
// bytes the server gets.
func (s *Stream) Write(p []byte) (n int, err error) {
	for {
		chunk := p[n:min(n+pumpSize, len(p))]
		m, err := s.write(chunk)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// writeBuffers are used again: without them, each 100 MB written would be 100 MB for the garbage
// collector.
var writeBuffers = sync.Pool{New: func() any { return new([pumpSize]byte) }}

// write writes at most pumpSize bytes.
func (s *Stream) write(p []byte) (int, error) {
	select {
	case <-s.closed:
		return 0, net.ErrClosed
	case <-s.deadline.passed():
		return 0, os.ErrDeadlineExceeded
	default:
	}
	select {
	case <-s.closed:
		return 0, net.ErrClosed
	case <-s.deadline.passed():
		return 0, os.ErrDeadlineExceeded
	case s.writing <- struct{}{}:
	}
	if s.ended {
		<-s.writing
		return 0, net.ErrClosed
	}
	if len(p) <= s.Credit {
		s.Credit -= len(p)
		n, err := s.Channel.Write(p)
		<-s.writing
		return n, closedPipe(err)
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	// the caller has p back before the write ends, if this side lets go
	buf := writeBuffers.Get().(*[pumpSize]byte)
	length := copy(buf[:], p)
	if !s.on.Run(func() {
		n, err := s.Channel.Write(buf[:length])
		writeBuffers.Put(buf)
		<-s.writing
		done <- result{n, err}
	}) {
		<-s.writing
		return 0, net.ErrClosed
	}
	select {
	case r := <-done:
		return r.n, closedPipe(r.err)
	case <-s.closed:
		return 0, net.ErrClosed
	case <-s.on.Stopped():
		return 0, net.ErrClosed
	case <-s.deadline.passed():
		return 0, os.ErrDeadlineExceeded
	}
}

// closedPipe translates x/crypto's word for writing to a channel that the server has closed.
func closedPipe(err error) error {
	if err == io.EOF {
		return io.ErrClosedPipe
	}
	return err
}

// CloseWrite sends the end of input, after the write under way if there is one, without waiting for
// it.
func (s *Stream) CloseWrite() error {
	end := func() {
		if !s.ended {
			s.ended = true
			s.Channel.CloseWrite()
		}
		<-s.writing
	}
	select {
	case <-s.closed:
		return net.ErrClosed
	case s.writing <- struct{}{}:
		end()
		return nil
	default:
	}
	s.on.Run(func() {
		select {
		case s.writing <- struct{}{}:
			end()
		case <-s.closed:
		}
	})
	return nil
}

// Closed is closed by Close.
func (s *Stream) Closed() <-chan struct{} { return s.closed }

// Close lets go: reads and writes return. A goroutine tells the server, because sending blocks as
// long as the network does.
func (s *Stream) Close() { s.CloseAfter(func() {}) }

// CloseAfter is Close, but say may send something to the server first. It runs in the goroutine
// that closes the channel.
func (s *Stream) CloseAfter(say func()) {
	s.once.Do(func() {
		close(s.closed)
		if s.OnClose != nil {
			s.OnClose()
		}
		s.on.Run(func() {
			say()
			s.Channel.Close()
		})
	})
}
