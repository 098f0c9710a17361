package sshbox

import (
	"errors"
	"testing"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/stretchr/testify/require"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	t.Run("root", func(t *testing.T) {
		t.Parallel()
		box := newBox(t, Config{Image: testImage, Network: "none"})
		hosttest.History(t, box, "/srv/work")
		// Another owner has the same history. A plain user of the box has another one.
		h, err := join(t, box).History(t.Context(), "/srv/work")
		require.NoError(t, err)
		all, err := h.Points(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		user, err := box.AsUser(t.Context(), "nobody")
		require.NoError(t, err)
		hosttest.History(t, user.(hosttest.Historian), "/tmp/theirs")
	})
	t.Run("plain user", func(t *testing.T) {
		t.Parallel()
		hosttest.History(t, newBox(t, Config{Image: testImage, User: "12345", Network: "none"}),
			"/tmp/work")
	})
}

// TestHistoryMachine: on a machine the states are in the box's directory, and go with it. Without
// boxd there are none.
func TestHistoryMachine(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	c := s.withBoxd()
	box := dialBoxd(t, c)
	hosttest.History(t, box, t.TempDir()+"/work")
	_, err := box.Fork(t.Context(), 2)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "sandbox.Like makes")
	require.ErrorIs(t, box.Snapshot(t.Context()), errors.ErrUnsupported)
	require.NoError(t, box.Close())
	require.Equal(t, "boxd", boxdFiles(t, c))
	plain, err := Dial(t.Context(), s.config())
	require.NoError(t, err)
	defer plain.Close()
	_, err = plain.History(t.Context(), "/tmp")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "boxd")
}
