package programs_test

import (
	"net"
	"os/exec"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/programs"
	"github.com/stretchr/testify/require"
)

// TestListener checks that an address is free when its Listener is closed, even while programs are
// being started.
func TestListener(t *testing.T) {
	stop := make(chan struct{})
	var starting sync.WaitGroup
	defer starting.Wait()
	defer close(stop)
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					exec.Command("true").Run()
				}
			}
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	for n := range 2000 {
		require.NoError(t, programs.Listener{Listener: l}.Close())
		l, err = net.Listen("tcp", address)
		require.NoErrorf(t, err, "the %dth time", n)
	}
	require.NoError(t, programs.Listener{Listener: l}.Close())
}
