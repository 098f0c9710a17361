package shellbox

import (
	"io"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// A Timeout that passes at the moment of the command's end bounds the wait for the caller's writer, too.
func TestDrainAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked, writer := io.Pipe()
		defer blocked.Close()
		w := &call{
			s: &session{gone: make(chan struct{})}, c: &command{}, view: &view{}, began: time.Now().Add(-time.Minute),
			o: sandbox.NewExecOptions(sandbox.Timeout(time.Second)), tee: newTee("Tee", writer),
		}
		w.tee.expect(1)
		w.tee.write([]byte("a"))
		w.c.leave(w)
		began := time.Now()
		require.ErrorIs(t, w.drain(t.Context()), exec.ErrWaitDelay)
		require.Equal(t, writerDelay, time.Since(began))
	})
}
