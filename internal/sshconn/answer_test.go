package sshconn

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/test/hostiletest"
)

// A stuck connection blocks all writes once the test has begun.
type stuck struct {
	net.Conn
	begun, closed chan struct{}
	once          sync.Once
}

func (s *stuck) Write(p []byte) (int, error) {
	select {
	case <-s.begun:
		<-s.closed
		return 0, net.ErrClosed
	default:
		return s.Conn.Write(p)
	}
}

func (s *stuck) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// TestHostileChannels checks that a Conn ends if the server opens channels on and on and reads no
// answers.
func TestHostileChannels(t *testing.T) {
	for name, extra := range map[string]string{"Small": "", "Long": strings.Repeat("A", 100<<10)} {
		hostiletest.Case{Name: name, Says: errFlood.Error(),
			Call: func(ctx context.Context, t *testing.T) error {
				near, far := pair(t)
				signer := hostKey(t)
				opening := make(chan error, 1)
				wire := &stuck{Conn: near, begun: make(chan struct{}), closed: make(chan struct{})}
				go func() {
					config := &ssh.ServerConfig{NoClientAuth: true}
					config.AddHostKey(signer)
					c, channels, requests, err := ssh.NewServerConn(far, config)
					if err != nil {
						opening <- err
						return
					}
					go ssh.DiscardRequests(requests)
					go func() {
						for ch := range channels {
							ch.Reject(ssh.Prohibited, "")
						}
					}()
					<-wire.begun
					var all sync.WaitGroup
					for range answersMax * 5 / 4 / (answerCost + len(extra)) {
						all.Go(func() { c.OpenChannel("x", []byte(extra)) })
					}
					all.Wait()
					c.Close()
					opening <- nil
				}()
				conn, err := Handshake(ctx, wire, "box", &ssh.ClientConfig{
					HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())}, nil)
				require.NoError(t, err)
				close(wire.begun)
				select {
				case <-conn.Gone():
				case <-ctx.Done():
					err = errors.New("the connection goes on")
				}
				conn.Close()
				require.NoError(t, soon(t, "the server's end", opening))
				if err != nil {
					return err
				}
				return conn.Err()
			}}.Run(t)
	}
}
