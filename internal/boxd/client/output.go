package client

import (
	"io"
	"net"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/sshconn"
	"golang.org/x/crypto/ssh"
)

// A remoteOutput is one of a program's outputs.
type remoteOutput struct {
	r *remote
	i int
}

func (o remoteOutput) Read(p []byte) (int, error) {
	r := o.r
	if o.i == 0 {
		r.mu.Lock()
		r.dealt = r.read[0]
		r.mu.Unlock()
	}
	endsSet := r.outputEndSet
	for {
		r.mu.Lock()
		ch, resumed := r.channel, r.resumed.Wait()
		if gone := r.skipped[o.i]; gone > 0 {
			r.skipped[o.i] = 0
			r.mu.Unlock()
			return 0, &hostapi.SkippedError{Bytes: gone}
		}
		r.mu.Unlock()
		if ch != nil {
			if n, err := r.readFrom(ch, o.i, p); n > 0 || err == nil {
				return n, nil
			}
		}
		select {
		case <-resumed:
			continue
		default:
		}
		select {
		case <-resumed:
		case <-endsSet:
			r.mu.Lock()
			at := r.read[o.i]
			r.mu.Unlock()
			if end := [2]uint64{r.outputEnd.Stdout, r.outputEnd.Stderr}[o.i]; at >= int64(end) {
				return 0, io.EOF
			}
			endsSet = nil // the rest comes on the next channel
		case <-r.closed:
			return 0, net.ErrClosed
		case <-r.lost:
			return 0, io.ErrUnexpectedEOF
		}
	}
}

// readFrom reads from ch if it is still the current channel, else it returns errCut.
func (r *remote) readFrom(ch *channel, i int, p []byte) (int, error) {
	r.reading[i].Lock()
	defer r.reading[i].Unlock()
	r.mu.Lock()
	current := r.channel == ch
	r.mu.Unlock()
	if !current {
		return 0, errCut
	}
	n, err := [2]*sshconn.Pump{ch.Out, ch.Err}[i].Read(p)
	r.mu.Lock()
	r.read[i] += int64(n)
	tell := r.read[i]-r.acked[i] >= ackEvery
	if tell {
		r.acked = r.read
	}
	ack := wire.Ack{Stdout: uint64(r.acked[0]), Stderr: uint64(r.acked[1])}
	r.mu.Unlock()
	if tell {
		ch.Channel.SendRequest(wire.AckRequest, false, ssh.Marshal(&ack))
	}
	return n, err
}
