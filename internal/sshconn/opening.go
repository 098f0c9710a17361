package sshconn

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// When a connection ends, x/crypto drops its channels. It refuses to open another channel only once
// a write has failed, and ignores the first write that fails. If a channel is opened in between,
// x/crypto waits for it for ever. So a write has to fail before x/crypto learns of the end.

// failWrites makes the connection's writes fail, and has x/crypto see one fail, before x/crypto
// learns that a read has failed.
func (m *meter) failWrites() {
	m.broken.Store(true)
	c := m.conn.Load()
	if c == nil {
		return
	}
	failed := make(chan struct{})
	go func() {
		(*c).SendRequest("keepalive@openssh.com", false, nil)
		close(failed)
	}()
	select {
	case <-failed:
	case <-time.After(openGrace):
		// During a key exchange, x/crypto waits for a message that will not come.
	}
}

// setConn stores x/crypto's connection. A read may have failed already.
func (m *meter) setConn(c ssh.Conn) {
	m.conn.Store(&c)
	if m.broken.Load() {
		m.failWrites()
	}
}

func (m *meter) Write(p []byte) (int, error) {
	if m.broken.Load() {
		return 0, ErrGone
	}
	return m.Conn.Write(p)
}

// messageMax is the greatest length of a payload. A packet of more than 256 KiB makes OpenSSH,
// x/crypto and Dropbear end the connection, with all that runs on it.
const messageMax = 255 << 10

// checkLength returns an error that is syscall.E2BIG if a payload is too long.
func checkLength(payload []byte) error {
	if len(payload) > messageMax {
		return fmt.Errorf("a message of %d bytes is too long for SSH: %w", len(payload),
			syscall.E2BIG)
	}
	return nil
}

// A channel is an ssh.Channel that refuses to send messages which would end the connection.
type channel struct{ ssh.Channel }

func (c channel) SendRequest(name string, wantReply bool, payload []byte) (bool, error) {
	if err := checkLength(payload); err != nil {
		return false, err
	}
	return c.Channel.SendRequest(name, wantReply, payload)
}

// A client is an ssh.Conn that refuses to send messages which would end the connection. Its
// OpenChannel also returns where x/crypto's waits for ever in spite of failWrites: if the
// connection ends because x/crypto rejects a packet, or if it ends during a key exchange.
type client struct {
	ssh.Conn
	gone <-chan struct{} // closed when the connection has ended
}

func (c client) SendRequest(name string, wantReply bool, payload []byte) (bool, []byte, error) {
	if err := checkLength(payload); err != nil {
		return false, nil, err
	}
	return c.Conn.SendRequest(name, wantReply, payload)
}

// openGrace is how long OpenChannel waits for x/crypto's after the connection's end. If x/crypto's
// does not wait for ever, it returns at once.
const openGrace = time.Second

func (c client) OpenChannel(kind string, extra []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	if err := checkLength(extra); err != nil {
		return nil, nil, err
	}
	got := make(chan opened, 1)
	go func() { // not in a Group: it may wait for ever
		ch, requests, err := c.Conn.OpenChannel(kind, extra)
		got <- opened{ch, requests, err}
	}()
	var late <-chan time.Time
	for gone := c.gone; ; {
		select {
		case o := <-got:
			if o.err != nil {
				return nil, nil, o.err
			}
			return channel{o.ch}, o.requests, nil
		case <-gone:
			gone, late = nil, time.After(openGrace)
		case <-late:
			return nil, nil, ErrGone
		}
	}
}
