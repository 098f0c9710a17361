package service

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
)

// TestSuspend checks that a suspended box comes back with its shell and its programs, if the
// runtime makes checkpoints. If it makes none, the error says so, and the box runs on.
//
// SANDSHELL_TEST_CHECKPOINT names an engine that was started with --experimental and has the image
// sandshell-busybox. SANDSHELL_TEST_CHECKPOINT_RUNTIME names a runtime of that engine.
func TestSuspend(t *testing.T) {
	host := os.Getenv("SANDSHELL_TEST_CHECKPOINT")
	if host == "" {
		t.Skip("SANDSHELL_TEST_CHECKPOINT names no engine with --experimental; " +
			"TestSuspendUnsupported has one without")
	}
	d, err := client.New(client.WithHost(host))
	require.NoError(t, err)
	defer d.Close()
	s := open(t, "suspend", func(o *Config) { o.Place = placeOn(d) }, small("small", func(s *Spec) {
		s.Config.Runtime = os.Getenv("SANDSHELL_TEST_CHECKPOINT_RUNTIME")
	}))
	defer s.Delete(context.Background(), "a")
	key := start(t, s, StartOptions{ID: "a", Env: []string{"TOKEN=secret"}}).SessionKey
	execute(t, s, "a", "X=5; cd /tmp; sleep 1000 &")
	err = s.Suspend(t.Context(), "a")
	if errors.Is(err, errors.ErrUnsupported) {
		t.Log(err)
		require.Equal(t, "5 /tmp\n", execute(t, s, "a", "echo $X $PWD"))
		return
	}
	require.NoError(t, err)
	i, err := s.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, Paused, i.Status)
	require.Contains(t, i.Detail, "suspended")
	require.NoError(t, s.Resume(t.Context(), "a"))
	require.Equal(t, "5 /tmp secret\n", execute(t, s, "a", "kill -0 $! && echo $X $PWD $TOKEN"))
	i, err = s.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, KeptAll, i.Kept)
	require.Equal(t, key, i.SessionKey)
}
