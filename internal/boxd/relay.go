//go:build linux

package main

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"golang.org/x/crypto/ssh"
)

// afterCloseLimit bounds the delivery of what a client has sent before it closed a channel.
const afterCloseLimit = 10 * time.Second

// A halfCloser is a connection whose two directions end separately.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// relay carries data both ways until both have ended, or the channel is closed. If the client's
// connection is cut, not all data has arrived. relay then resets conn, so that the program does not
// take the cut for the end. It resets conn too if the client asks for that.
func relay(ch ssh.Channel, requests <-chan *ssh.Request, conn halfCloser, on *conn) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for r := range requests {
			if r.Type == wire.ResetRequest {
				reset(conn)
			}
			if r.WantReply {
				r.Reply(r.Type == wire.ResetRequest, nil)
			}
		}
		// The client has closed the channel and reads nothing more. What it has sent must still be
		// delivered.
		now := time.Now()
		conn.SetReadDeadline(now)
		conn.SetWriteDeadline(now.Add(afterCloseLimit))
	}()
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := io.Copy(conn, ch); err != nil {
			io.Copy(io.Discard, ch) // the other end reads no more, but may still write
		}
		if on.cut() {
			reset(conn)
		}
		conn.CloseWrite()
	})
	both.Go(func() {
		io.Copy(ch, conn)
		ch.CloseWrite()
	})
	both.Wait()
	conn.Close()
	ch.Close()
	<-over
}

// reset resets a TCP connection, so that the other end reads an error and not the end. A Unix
// socket cannot do that.
func reset(conn net.Conn) {
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		tcp.SetLinger(0)
		conn.Close()
	}
}
