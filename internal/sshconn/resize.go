package sshconn

import (
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// resizeLimit bounds the wait for the answer to a window-change. RFC 4254 does not require an
// answer. OpenSSH, Dropbear and boxd give one on request, but a server may be paused.
const resizeLimit = time.Second

// windowSize is the payload of a window-change: RFC 4254, section 6.7. Width and Height are in
// pixels; 0 means unknown.
type windowSize struct{ Cols, Rows, Width, Height uint32 }

// Resize sets the size of the terminal on the channel. It returns when the server has applied the
// size, so that nothing that is sent on another channel afterwards overtakes it. If the server does
// not answer within a second, Resize returns nil. After Close, the error is net.ErrClosed.
func (s *Stream) Resize(rows, cols int) error {
	answer := make(chan error, 1)
	if !s.on.Run(func() {
		_, err := s.Channel.SendRequest("window-change", true,
			ssh.Marshal(&windowSize{Cols: uint32(cols), Rows: uint32(rows)}))
		answer <- err
	}) {
		return net.ErrClosed
	}
	limit := time.NewTimer(resizeLimit)
	defer limit.Stop()
	select {
	case err := <-answer:
		return err
	case <-s.closed:
		return net.ErrClosed
	case <-limit.C:
		return nil
	}
}
