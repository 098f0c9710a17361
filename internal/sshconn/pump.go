package sshconn

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
)

// pumpSize is how much one read takes from a channel: the payload of the largest packet that x/crypto lets a server
// send.
const pumpSize = 32 << 10

// A Pump reads an SSH channel on behalf of a reader that may go away.
//
// A read of an ssh.Channel ends only when the server says so: not when the channel is closed on this side, and not
// while the network is silent. A Close that has to free a reader would hang with it. So a goroutine, started by the
// first Read and waited for by the connection, does the reading, two buffers ahead at most.
type Pump struct {
	src    io.Reader
	on     *Group          // waits for the goroutine; when it is stopped, the stream ends
	closed <-chan struct{} // closed when this side lets go of the stream

	once    sync.Once
	full    chan []byte   // what has been read; closed after the last, with err set
	free    chan []byte   // buffers to read into
	reading chan struct{} // held by the one Read under way
	err     error

	buf  []byte // the buffer that rest is a part of; nil if it came from elsewhere
	rest []byte // read, but not asked for yet

	deadline deadline
}

func newPump(src io.Reader, on *Group, closed <-chan struct{}) *Pump {
	return &Pump{
		src: src, on: on, closed: closed,
		full: make(chan []byte), free: make(chan []byte, 2), reading: make(chan struct{}, 1),
		deadline: makeDeadline(),
	}
}

func (r *Pump) run() {
	defer close(r.full)
	for {
		var buf []byte
		select {
		case buf = <-r.free:
		case <-r.closed:
			r.err = net.ErrClosed
			return
		case <-r.on.Stopped():
			r.err = net.ErrClosed
			return
		}
		n, err := r.src.Read(buf)
		if n > 0 {
			select {
			case r.full <- buf[:n]:
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

// Read reads what there is. It returns io.EOF at the stream's end, and net.ErrClosed once this side has let go.
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
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(p, r.rest)
	r.take(n)
	return n, nil
}

// fill waits until there is something in rest. The caller holds reading.
func (r *Pump) fill() error {
	if len(r.rest) > 0 {
		return nil
	}
	r.once.Do(func() {
		r.free <- make([]byte, pumpSize)
		r.free <- make([]byte, pumpSize)
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
	case buf, ok := <-r.full:
		if !ok {
			return r.err
		}
		r.buf, r.rest = buf[:cap(buf)], buf
		return nil
	}
}

// take drops the first n bytes of rest, and gives an empty buffer back.
func (r *Pump) take(n int) {
	if r.rest = r.rest[n:]; len(r.rest) == 0 && r.buf != nil {
		r.free <- r.buf
		r.buf = nil
	}
}

// SkipPast drops everything up to and including mark, and returns the rest of mark's line. What follows the line
// stays to be read. If the stream ends first, SkipPast returns the error and the end of what it has dropped, some 4 KiB
// at most.
func (r *Pump) SkipPast(mark []byte) (line, dropped []byte, err error) {
	r.reading <- struct{}{}
	defer func() { <-r.reading }()
	const keep = 4 << 10
	var seen []byte
	for {
		if err := r.fill(); err != nil {
			return nil, seen, err
		}
		seen = append(seen, r.rest...)
		r.take(len(r.rest))
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
