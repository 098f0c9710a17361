package streams

import (
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A Typist writes to a file at once what the file takes, and the rest when somebody reads: all of
// it, in order.
func TestTypistNow(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	var group sync.WaitGroup
	typist := NewTypist(w, 1000)
	require.NotNil(t, typist.now)
	require.Equal(t, int64(0), typist.Write("before "))
	typist.Start(&group)
	require.NoError(t, typist.AwaitIdle(t.Context()))
	require.Equal(t, int64(7), typist.Write("now "))
	require.True(t, typist.Idle(), "no goroutine was needed")
	long := strings.Repeat("0123456789", 100_000)
	typist.Write(long)
	require.False(t, typist.Idle())
	typist.Write("behind")
	all := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		all <- string(text)
	}()
	require.NoError(t, typist.AwaitIdle(t.Context()))
	require.NoError(t, w.Close())
	require.Equal(t, "before now "+long+"behind", <-all)
	typist.Write("nobody gets this")
	require.NoError(t, typist.AwaitIdle(t.Context()))
	typist.Stop()
	group.Wait()
}

// A Typist on a file that makes a write wait leaves the writing to its goroutine.
func TestTypistWaits(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	w.Fd() // in blocking mode from here on
	require.Nil(t, NewTypist(w, 1000).now)
	require.Nil(t, NewTypist(io.Discard, 1000).now)
}
