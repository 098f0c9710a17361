package sshconn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGroup(t *testing.T) {
	g := NewGroup()
	proceed := make(chan struct{})
	ran := make(chan bool, 2)
	require.True(t, g.Run(func() {
		<-proceed
		ran <- g.Run(func() {}) // false, even in a goroutine of the group
		ran <- true
	}))
	require.True(t, g.Stop())
	require.False(t, g.Stop(), "not the first")
	soon(t, "Stopped", g.Stopped())
	require.False(t, g.Run(func() { t.Error("ran after Stop") }))

	waited := async(func() bool { g.Wait(); return len(ran) == 2 })
	select {
	case <-waited:
		t.Fatal("Wait did not wait")
	default:
	}
	close(proceed)
	require.True(t, soon(t, "Wait", waited), "Wait returned before the goroutine ended")
	require.False(t, <-ran, "began after Stop")
}
