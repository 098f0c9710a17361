package localbox_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// TestUntilBesideStuckLogTo: the end of an Until gives up no writer of LogTo. A job whose writer
// blocks runs until the writer has got all.
func TestUntilBesideStuckLogTo(t *testing.T) {
	t.Parallel()
	box := open(t, localbox.Config{})
	w := newStuck(t)
	j, err := box.Background(t.Context(), "echo a; exit 3", sandbox.LogTo(w))
	require.NoError(t, err)
	<-w.begun
	r, err := j.Until(t.Context(), sandbox.Until(regexp.MustCompile("a")))
	require.NoError(t, err)
	require.Equal(t, "a", r.Matched)
	r, err = j.Until(t.Context(), sandbox.Yield(2*time.Second))
	require.NoError(t, err)
	require.Equal(t, sandbox.Running, r.State)
	r, err = j.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, sandbox.Running, r.State)
	w.end()
	r, err = j.Until(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, r.ExitCode)
}
