package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/boxd/wire"
)

// TestQuestionsSideBySide checks that a question is answered while boxd takes long for another.
func TestQuestionsSideBySide(t *testing.T) {
	t.Parallel()
	asked, release := make(chan bool), make(chan bool)
	b := &hostileBoxd{
		onRequest: func(name string, _ []byte) (bool, []byte) {
			if name == wire.TreeRequest {
				close(asked)
				<-release
				return true, []byte("[]")
			}
			return true, nil
		},
		onAskChannel: func(name string, ch ssh.Channel) {
			if name == wire.UptimeRequest {
				wire.WriteFrame(ch, wire.EncodeAnswer(true, []byte("1000000000")))
			}
		},
	}
	h, closeHost := b.connect(t)
	tree := make(chan error)
	go func() {
		_, err := h.Tree(t.Context(), 1)
		tree <- err
	}()
	<-asked
	for range 3 {
		up, err := h.Uptime(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Second, up)
	}
	close(release)
	require.NoError(t, <-tree)
	require.NoError(t, closeHost())
}
