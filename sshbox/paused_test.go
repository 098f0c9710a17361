package sshbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/docker"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
)

// TestExecutePaused shows that the calls of a session return in a paused container when their ctx
// or their time has ended. The command is killed once the container goes on, and the session is
// usable then.
func TestExecutePaused(t *testing.T) {
	t.Parallel()
	d := testEngine(t)
	box, err := New(testContext(t), Config{Image: testImage, Network: "none"})
	require.NoError(t, err)
	defer box.Close()
	second, err := box.Open(t.Context())
	require.NoError(t, err)
	third, err := box.Open(t.Context())
	require.NoError(t, err)
	_, err = third.Execute(t.Context(), "sleep 1000", sandbox.Yield(time.Nanosecond))
	require.NoError(t, err)
	require.NoError(t, docker.Pause(t.Context(), d, box.ContainerID()))

	calls := map[string]func() (*sandbox.Result, error){
		"ctx": func() (*sandbox.Result, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			return box.Execute(ctx, "sleep 1000")
		},
		"Timeout": func() (*sandbox.Result, error) {
			return second.Execute(t.Context(), "sleep 1000", sandbox.Timeout(100*time.Millisecond))
		},
		"Interrupt": func() (*sandbox.Result, error) { return third.Interrupt(t.Context()) },
	}
	type end struct {
		call string
		r    *sandbox.Result
		err  error
	}
	ends := make(chan end, len(calls))
	for name, call := range calls {
		go func() {
			r, err := call()
			ends <- end{name, r, err}
		}()
	}
	for range calls {
		select {
		case e := <-ends:
			require.ErrorContains(t, e.err, "the box does not answer", e.call)
			if e.call != "Interrupt" && !errors.Is(e.err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", e.call, e.err)
			}
			require.Equal(t, sandbox.Running, e.r.State, e.call)
		case <-time.After(testenv.Limit):
			t.Fatal("a call has not returned")
		}
	}
	_, err = d.ContainerUnpause(t.Context(), box.ContainerID(), client.ContainerUnpauseOptions{})
	require.NoError(t, err)
	for _, s := range []sandbox.Session{box, second, third} {
		// The killing goes on, and is no caller's: wait for its end.
		if _, err := s.Wait(t.Context()); !errors.Is(err, sandbox.ErrIdle) {
			require.NoError(t, err)
		}
		r, err := s.Execute(t.Context(), "echo alive")
		require.NoError(t, err)
		require.Equal(t, "alive\n", r.Output)
	}
}
