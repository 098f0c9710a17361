//go:build linux

package main

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/sandshell/sandshell/internal/boxd/client"
	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/stretchr/testify/require"
)

// A heldWay is a way on which no connection is made while a test holds the lock.
type heldWay struct {
	*way
	sync.Mutex
}

func (w *heldWay) Join(ctx context.Context) (client.Streams, error) {
	w.Lock()
	defer w.Unlock()
	return w.way.Join(ctx)
}

// TestListenerOfAway gives the address of a program that is away to another program that uses the
// box. The address of one that is there stays its own.
func TestListenerOfAway(t *testing.T) {
	t.Parallel()
	w := &heldWay{way: &way{b: startBoxWith(t, []string{"-keep"}, nil)}}
	first := connect(t, w, true)
	second := connect(t, &way{b: w.b}, true)
	own, err := net.Listen("tcp", "127.0.0.1:0") // as a program of the box has it
	require.NoError(t, err)
	defer own.Close()
	_, err = second.Listen(t.Context(), "tcp", own.Addr().String())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NotErrorIs(t, err, hostapi.ErrListens)

	l, err := first.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := l.Addr().String()
	_, err = second.Listen(t.Context(), "tcp", at)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorIs(t, err, hostapi.ErrListens)
	w.cut()
	other, err := first.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err, "it is back")

	w.Lock()
	w.cut()
	var taken net.Listener
	waitFor(t, "boxd knows that the first one is away", func() bool {
		taken, err = second.Listen(t.Context(), "tcp", at)
		return err == nil
	})
	require.Equal(t, at, taken.Addr().String())
	w.Unlock()
	_, err = l.Accept()
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, l.Close())
	inside, err := net.Dial("tcp", at)
	require.NoError(t, err)
	defer inside.Close()
	accepted, err := taken.Accept()
	require.NoError(t, err)
	require.NoError(t, accepted.Close())
	require.NoError(t, taken.Close())

	// What nobody has asked for has stayed.
	inside, err = net.Dial("tcp", other.Addr().String())
	require.NoError(t, err)
	defer inside.Close()
	accepted, err = other.Accept()
	require.NoError(t, err)
	require.NoError(t, accepted.Close())
	require.NoError(t, other.Close())
}
