package sshconn

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// TestOpenAtTheEnd checks that OpenChannel returns while the connection ends. x/crypto's own
// OpenChannel waits for ever at the end of one in thirty connections.
func TestOpenAtTheEnd(t *testing.T) {
	for range 200 {
		c, s := connect(t)
		var opening sync.WaitGroup
		for range 4 {
			opening.Go(func() {
				for {
					_, _, err := c.Client.OpenChannel("session", nil)
					if refused := (*ssh.OpenChannelError)(nil); !errors.As(err, &refused) {
						return
					}
				}
			})
		}
		opening.Go(func() {
			for {
				select {
				case ch := <-s.channels:
					ch.Reject(ssh.Prohibited, "no")
				case <-c.Gone():
					return
				}
			}
		})
		time.Sleep(time.Millisecond)
		s.far.CloseWrite()
		<-c.Gone()
		began := time.Now()
		opening.Wait()
		require.Less(t, time.Since(began), openGrace)
	}
}

// A forgetful connection never answers OpenChannel.
type forgetful struct {
	ssh.Conn
	never chan struct{}
}

func (f forgetful) OpenChannel(string, []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	<-f.never
	return nil, nil, ErrGone
}

// TestOpenForgottenChannel checks that OpenChannel returns once the connection has ended, even if
// x/crypto's does not.
func TestOpenForgottenChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := forgetful{never: make(chan struct{})}
		defer close(f.never)
		gone := make(chan struct{})
		opened := async(func() error {
			_, _, err := client{f, gone}.OpenChannel("session", nil)
			return err
		})
		time.Sleep(time.Hour)
		require.Empty(t, opened)
		close(gone)
		require.ErrorIs(t, <-opened, ErrGone)
	})
}
