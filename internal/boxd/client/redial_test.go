package client

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/test/testenv"
)

// A slowBoxd is a Place that takes some time until it answers.
type slowBoxd struct {
	*hostileBoxd
	takes atomic.Int64 // in nanoseconds
}

func (b *slowBoxd) Join(ctx context.Context) (Streams, error) {
	select {
	case <-time.After(time.Duration(b.takes.Load())):
		return b.hostileBoxd.Join(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestSlowAnswer checks that a box is not lost because its machine is so busy that each connection
// takes longer than the first attempt may take.
func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	b := &slowBoxd{hostileBoxd: &hostileBoxd{}}
	b.signer, err = ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	conns := make(chan *ssh.ServerConn, 10)
	b.onConnect = func(c *ssh.ServerConn) { conns <- c }
	h, err := Connect(t.Context(), Config{Name: "box", Place: b, Patience: time.Minute,
		Attempt: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	b.takes.Store(int64(300 * time.Millisecond))
	cut := <-conns
	cut.Close()
	cut.Wait()
	select {
	case <-conns:
	case <-time.After(testenv.Limit):
		t.Error("no second connection:", h.lostCause())
	}
	h.Close()
	b.work.Wait()
}
