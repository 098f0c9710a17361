package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/sandshell/sandshell/internal/boxd/wire"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// TestTakeGivenUp gives up a Take before boxd answers, and then loses the connection. boxd may have
// given it the turn. On the next connection it must not release the program: it is the box's.
func TestTakeGivenUp(t *testing.T) {
	taking := make(chan struct{})
	held := make(chan []string, 1)
	first := make(chan *ssh.ServerConn, 2)
	b := &hostileBoxd{
		onConnect: func(c *ssh.ServerConn) { first <- c },
		onProgram: func(ch ssh.Channel) {
			close(taking)
			io.Copy(io.Discard, ch)
		},
		onRequest: func(name string, payload []byte) (bool, []byte) {
			if name == wire.HoldRequest {
				var ids []string
				json.Unmarshal(payload, &ids)
				held <- ids
			}
			return true, nil
		},
	}
	h, end := b.connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan error, 1)
	go func() {
		_, err := h.Take(ctx, hostapi.Listed{ID: "shared", Rows: 24, Cols: 80}, -1)
		taken <- err
	}()
	<-taking
	cancel()
	require.ErrorIs(t, <-taken, context.Canceled)
	(<-first).Close()
	select {
	case ids := <-held:
		require.Contains(t, ids, "shared")
	case <-time.After(testenv.Limit):
		t.Error("there is no other connection")
	}
	require.NoError(t, end())
}

// TestJoinRefused joins a box that has as many owners as it may have. It is not lost.
func TestJoinRefused(t *testing.T) {
	b := &hostileBoxd{refuses: errors.New("16 programs use the box, and no more may")}
	defer b.work.Wait()
	_, err := Connect(t.Context(), Config{Name: "box", Place: b, Joins: true,
		Logger: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, b.refuses.Error())
	require.NotErrorIs(t, err, sandbox.ErrLost)
}
