package harness

import (
	"errors"
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
	"github.com/stretchr/testify/require"
)

// A writer is a function that is an io.Writer.
type writer func() error

func (w writer) Write(p []byte) (int, error) { return len(p), w() }

// TestProgressFails checks that a run goes on if Config.Progress fails or panics, and returns the
// error at its end.
func TestProgressFails(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t, dockertest.Busybox)
	written := 0
	s, err := Run(t.Context(), Config{
		Tasks: []Task{small("one"), small("two")}, Dir: t.TempDir(), Name: "oracle", Agent: Oracle,
		Parallel: 1,
		Progress: writer(func() error { written++; panic("oops") }),
	})
	require.ErrorContains(t, err,
		"harness: write to Config.Progress: Config.Progress panicked: oops")
	require.Equal(t, 1, written)
	require.Equal(t, map[Status]int{Pass: 2}, s.Counts)

	full := errors.New("no space")
	p := newProgress(writer(func() error { return full }), 1, 1)
	require.ErrorIs(t, p.end(), full)
}
