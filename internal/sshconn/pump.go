package sshconn

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
)

// pumpSize is how much one read takes from a channel: the payload of the largest packet that
// x/crypto lets a server send.
const pumpSize = 32 << 10

// A Pump reads an SSH channel on behalf of a reader that may go away.
//
// A read of an ssh.Channel ends only when the server sends something. It does not end when this
// side closes the channel, nor while the network is silent. So a goroutine reads the channel, at
// most two buffers ahead, and Close need not wait for the read. The first Read starts the
// goroutine, and the Group waits for it. The buffers are small until a read fills one, because most
// channels are silent most of the time.
type Pump struct {
	src    io.Reader
	on     *Group          // waits for the goroutine; when on is stopped, the stream ends
	closed <-chan struct{} // closed when this side closes the stream

	once    sync.Once
	full    chan piece    // what has been read; closed after the last piece, with err set
	free    chan []byte   // small buffers to read into
	reading chan struct{} // held by the one Read under way
	err     error

	current piece  // the piece that contains rest; the zero piece if SkipPast has set rest
	rest    []byte // the data that Read has not returned yet

	deadline deadline
}

// A piece is the result of one read of the channel.
type piece struct {
	data  []byte
	small []byte          // a small buffer, which goes back to free
	large *[pumpSize]byte // if not nil, the buffer of data, in place of small
}

// smallSize is the size of the small buffers. A channel that has been read keeps two of them while
// it is idle.
const smallSize = 1 << 10

var pumpBuffers = sync.Pool{New: func() any { return new([pumpSize]byte) }}

func newPump(src io.Reader, on *Group, closed <-chan struct{}) *Pump {
	return &Pump{
		src: src, on: on, closed: closed,
		full: make(chan piece), free: make(chan []byte, 2), reading: make(chan struct{}, 1),
		deadline: makeDeadline(),
	}
}

func (r *Pump) run() {
	defer close(r.full)
	for more := false; ; {
		var p piece
		select {
		case p.small = <-r.free:
		case <-r.closed:
			r.err = net.ErrClosed
			return
		case <-r.on.Stopped():
			r.err = net.ErrClosed
			return
		}
		buf := p.small
		if more {
			p.large = pumpBuffers.Get().(*[pumpSize]byte)
			buf = p.large[:]
		}
		n, err := r.src.Read(buf)
		more = n == len(buf)
		if n > 0 {
			p.data = buf[:n]
			select {
			case r.full <- p:
			case <-r.closed:
			case <-r.on.Stopped():
			}
		}
		if err != nil {
			r.err = err
			select {
			case <-r.on.Stopped(): // closing the connection looks like the stream's end
				r.err = net.ErrClosed
			default:
			}
			return
		}
	}
}

// Read implements io.Reader. It returns io.EOF at the stream's end, net.ErrClosed after this side
// has closed the stream, and os.ErrDeadlineExceeded after the deadline.
func (r *Pump) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	select {
	case <-r.closed:
		return 0, net.ErrClosed
	case <-r.deadline.passed():
		return 0, os.ErrDeadlineExceeded
	default:
	}
	select {
	case <-r.closed:
		return 0, net.ErrClosed
	case <-r.deadline.passed():
		return 0, os.ErrDeadlineExceeded
	case r.reading <- struct{}{}:
	}
	defer func() { <-r.reading }()
	if err := r.fillLocked(); err != nil {
		return 0, err
	}
	n := copy(p, r.rest)
	r.consumeLocked(n)
	return n, nil
}

// fillLocked waits until there is something in rest.
func (r *Pump) fillLocked() error {
	if len(r.rest) > 0 {
		return nil
	}
	r.once.Do(func() {
		r.free <- make([]byte, smallSize)
		r.free <- make([]byte, smallSize)
		if !r.on.Run(r.run) {
			r.err = net.ErrClosed
			close(r.full)
		}
	})
	select {
	case <-r.closed:
		return net.ErrClosed
	case <-r.on.Stopped():
		return net.ErrClosed
	case <-r.deadline.passed():
		return os.ErrDeadlineExceeded
	case p, ok := <-r.full:
		if !ok {
			return r.err
		}
		r.current, r.rest = p, p.data
		return nil
	}
}

// consumeLocked drops the first n bytes of rest. When rest is empty, it gives the buffers back.
func (r *Pump) consumeLocked(n int) {
	if r.rest = r.rest[n:]; len(r.rest) == 0 && r.current.small != nil {
		if r.current.large != nil {
			pumpBuffers.Put(r.current.large)
		}
		r.free <- r.current.small
		r.current = piece{}
	}
}

// SkipPast drops everything up to and including mark, and returns the rest of mark's line. Read
// returns what follows the line. If the stream ends first, SkipPast returns the error and the last
// bytes that it has dropped, about 4 KiB at most.
func (r *Pump) SkipPast(mark []byte) (line, dropped []byte, err error) {
	r.reading <- struct{}{}
	defer func() { <-r.reading }()
	const keep = 4 << 10
	var seen []byte
	for {
		if err := r.fillLocked(); err != nil {
			return nil, seen, err
		}
		seen = append(seen, r.rest...)
		r.consumeLocked(len(r.rest))
		begin := bytes.Index(seen, mark)
		if begin < 0 {
			if len(seen) > keep+len(mark) {
				seen = append([]byte(nil), seen[len(seen)-keep-len(mark):]...)
			}
			continue
		}
		line = seen[begin+len(mark):]
		end := bytes.IndexByte(line, '\n')
		if end < 0 {
			if len(line) > keep {
				return nil, seen, bytes.ErrTooLarge
			}
			continue
		}
		r.rest = line[end+1:]
		return bytes.TrimSuffix(line[:end], []byte("\r")), nil, nil
	}
}
