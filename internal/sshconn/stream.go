package sshconn

import (
	"cmp"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A Stream is an SSH channel whose reads and writes return as soon as this side closes it, whatever
// the server does. Those of x/crypto return only when the server has answered. A server does not
// answer while a program leaves its input unread, or when the server is gone. The methods of a
// Stream may be called from several goroutines.
type Stream struct {
	Channel ssh.Channel
	// Out reads the channel's data. Err reads its extended data, the standard error.
	Out, Err *Pump
	// OnClose is called by the first Close. It may be nil.
	OnClose func()
	// Credit is how many bytes are certain to fit into the server's window. Writes use it up. It
	// may be set before the first Write.
	Credit int
	// Piece is how many bytes of a Write one packet carries at most; 0 stands for pumpSize. It is
	// set before the first Write.
	Piece int

	on       *Group // waits for the stream's goroutines
	closed   chan struct{}
	once     sync.Once
	writing  chan struct{} // held by the one write under way
	ended    bool          // the end of input has been sent; writing guards ended and Credit
	deadline deadline      // of writes
}

// FirstCredit is half of the window that the servers of OpenSSH (CHAN_SES_WINDOW_DEFAULT,
// CHAN_TCP_WINDOW_DEFAULT) and x/crypto give a channel. A write that fits into it cannot block for
// lack of window, so it needs no goroutine and is about 15 µs faster. Most sessions write less in
// total. x/crypto does not tell how much of the window the server has given back.
const FirstCredit = 1 << 20

// InnerPiece is a Piece for a connection that runs in a channel of another one. The packet, with
// its header, padding and MAC, then fits into one packet of the outer connection.
const InnerPiece = pumpSize - 128

// KnowsCredit reports whether a server of that version gives a window of at least FirstCredit.
func KnowsCredit(version string) bool {
	return strings.HasPrefix(version, "SSH-2.0-OpenSSH_") ||
		strings.HasPrefix(version, "SSH-2.0-Go")
}

// NewStream makes a Stream of a channel. on waits for the Stream's goroutines. When on is stopped,
// the Stream ends.
func NewStream(ch ssh.Channel, on *Group) *Stream {
	s := &Stream{Channel: ch, on: on, closed: make(chan struct{}), writing: make(chan struct{}, 1),
		deadline: makeDeadline()}
	s.Out = newPump(ch, on, s.closed)
	s.Err = newPump(ch.Stderr(), on, s.closed)
	return s
}

// Write implements io.Writer. After an error it is unknown how many of the bytes the server gets.
func (s *Stream) Write(p []byte) (n int, err error) {
	for {
		chunk := p[n:min(n+cmp.Or(s.Piece, pumpSize), len(p))]
		m, err := s.write(chunk)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// writeBuffers reuses buffers. Otherwise each write would make garbage of its size.
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
	// If this side closes the stream, the caller may reuse p before the write ends. So p is copied.
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

// closedPipe returns io.ErrClosedPipe for the error with which x/crypto refuses to write to a
// channel that the server has closed.
func closedPipe(err error) error {
	if err == io.EOF {
		return io.ErrClosedPipe
	}
	return err
}

// CloseWrite sends the end of input. If a write is under way, CloseWrite does not wait for it: the
// end of input follows the write.
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

// Closed returns a channel that is closed by Close.
func (s *Stream) Closed() <-chan struct{} { return s.closed }

// Close closes the stream: reads and writes return. Close does not wait. A goroutine tells the
// server, because sending may block.
func (s *Stream) Close() { s.CloseAfter(func() {}) }

// CloseAfter closes the stream like Close, but first calls f, which may send something. f runs
// in the goroutine that closes the channel.
func (s *Stream) CloseAfter(f func()) {
	s.once.Do(func() {
		close(s.closed)
		if s.OnClose != nil {
			s.OnClose()
		}
		s.on.Run(func() {
			f()
			s.Channel.Close()
		})
	})
}
