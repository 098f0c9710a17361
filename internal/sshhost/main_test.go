package sshhost

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/internal/test/sshdtest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	run     = hosttest.Run
	finish  = hosttest.Finish
	sh      = hosttest.Sh
	waitFor = hosttest.WaitFor
	alive   = hosttest.Alive
	kill    = hosttest.Kill
)

func noError(t testing.TB, err error) {
	t.Helper()
	require.NoError(t, err)
}

// hostOf logs in to a server, and closes the Host when the test ends.
func hostOf(t testing.TB, s *sshdtest.Server, c Config) *Host {
	t.Helper()
	c.Dial = s.Connect
	first, err := s.Connect(t.Context())
	require.NoError(t, err)
	h := New(first, c)
	t.Cleanup(func() { h.Close() })
	return h
}
