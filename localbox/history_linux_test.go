package localbox_test

import (
	"context"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/hosttest"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	box := open(t, localbox.Config{})
	hosttest.History(t, box, box.Dir()+"/work")
	h, err := box.History(t.Context(), ".")
	require.NoError(t, err)
	require.NoError(t, box.Close())
	_, err = h.Save(context.Background())
	require.ErrorIs(t, err, sandbox.ErrClosed)
	_, err = h.Points(context.Background())
	require.ErrorIs(t, err, sandbox.ErrClosed)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}
