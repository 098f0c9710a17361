package boxclient

import (
	"io"
	"net"
)

// A remoteInput is a program's input.
type remoteInput struct{ r *remote }

// Write returns when p has been sent or, while there is no connection, is kept to be sent on the next one.
func (w remoteInput) Write(p []byte) (n int, err error) {
	r := w.r
	r.writing.Lock()
	defer r.writing.Unlock()
	for n < len(p) {
		r.mu.Lock()
		for len(r.unacked) >= unackedMax && r.over() == nil {
			r.change.Wait()
		}
		if err := r.over(); err != nil {
			r.mu.Unlock()
			return n, err
		}
		chunk := p[n:min(len(p), n+unackedMax-len(r.unacked))]
		r.unacked = append(r.unacked, chunk...)
		ch := r.channel
		r.mu.Unlock()
		if ch != nil {
			ch.Write(chunk) // if it fails, the chunk is sent again on the next channel
		}
		n += len(chunk)
	}
	return n, nil
}

// over returns why nothing can be written any more; r.mu is held.
func (r *remote) over() error {
	select {
	case <-r.closed:
		return net.ErrClosed
	case <-r.gone:
		return io.ErrClosedPipe
	default:
	}
	if r.inputEnd {
		return net.ErrClosed
	}
	return nil
}

func (w remoteInput) Close() error {
	r := w.r
	if r.terminal {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inputEnd {
		return nil
	}
	r.inputEnd = true
	if ch, total := r.channel, r.taken+int64(len(r.unacked)); ch != nil {
		ch.on.Run(func() { ch.endInput(total) })
	}
	return nil
}
