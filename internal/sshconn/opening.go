package sshconn

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// At a connection's end x/crypto forgets its channels, and refuses to open another only once a
// write has failed; and of the first write that fails it says nothing. For a channel that is opened
// in between it waits for ever. So a write has to fail before x/crypto learns of the end.

// failWrites has the connection's writes fail, before x/crypto learns that a read has.
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
		// keys are being exchanged, and it waits for what the other end does not say any more
	}
}

// setConn is called when the connection is made.
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

// messageMax is how long a payload may be. A longer packet than 256 KiB makes OpenSSH, x/crypto and
// Dropbear end the connection, with all that runs on it.
const messageMax = 255 << 10

// checkLength returns syscall.E2BIG, in words, for a payload that is too long.
func checkLength(payload []byte) error {
	if len(payload) > messageMax {
		return fmt.Errorf("a message of %d bytes is too long for SSH: %w", len(payload),
			syscall.E2BIG)
	}
	return nil
}

// A channel is x/crypto's, but that it sends no message that ends the connection.
type channel struct{ ssh.Channel }

func (c channel) SendRequest(name string, wantReply bool, payload []byte) (bool, error) {
	if err := checkLength(payload); err != nil {
		return false, err
	}
	return c.Channel.SendRequest(name, wantReply, payload)
}

func (c client) SendRequest(name string, wantReply bool, payload []byte) (bool, []byte, error) {
	if err := checkLength(payload); err != nil {
		return false, nil, err
	}
	return c.Conn.SendRequest(name, wantReply, payload)
}

// A client is x/crypto's connection, but that it sends no message that ends the connection, and
// that OpenChannel returns where x/crypto waits for ever nevertheless: the connection ends because
// of what was read, or while keys are exchanged.
type client struct {
	ssh.Conn
	gone <-chan struct{}
}

// forgotten is how long behind the connection's end an OpenChannel may take to return: all others
// do so at once.
const openGrace = time.Second

func (c client) OpenChannel(kind string, extra []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	if err := checkLength(extra); err != nil {
		return nil, nil, err
	}
	got := make(chan opened, 1)
	go func() { // nobody waits for one that is forgotten
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
