package recording_test

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/recording"
)

// TestFails: a writer that fails, or takes nothing, ends the recording and nothing else.
func TestFails(t *testing.T) {
	t.Parallel()
	t.Run("Error", func(t *testing.T) {
		t.Parallel()
		full := errors.New("disk full")
		rec := recording.New(newBox(t), &failing{n: 100, err: full})
		res, err := rec.Execute(t.Context(), "seq 1 100000; (exit 3)")
		require.NoError(t, err)
		require.Equal(t, 3, res.ExitCode)
		require.Equal(t, 588895, len(res.Output))
		require.ErrorIs(t, rec.Close(), full)
		require.ErrorIs(t, rec.Err(), full)
	})
	t.Run("Blocks", func(t *testing.T) {
		t.Parallel()
		r, w := io.Pipe()
		rec := recording.New(newBox(t), w)
		rec.SetPatience(100 * time.Millisecond)
		// more than may wait
		res, err := rec.Execute(t.Context(), "seq 1 1000000", sandbox.MaxOutput(1000))
		require.NoError(t, err)
		require.EqualValues(t, 6888896, int64(len(res.Output))+res.Omitted)
		require.ErrorIs(t, rec.Close(), exec.ErrWaitDelay)
		require.NoError(t, r.Close())
	})
	t.Run("BlocksWhileKilled", func(t *testing.T) {
		t.Parallel()
		r, w := io.Pipe()
		rec := recording.New(newBox(t), w)
		res, err := rec.Execute(t.Context(), "yes", sandbox.MaxOutput(1000),
			sandbox.Timeout(2*time.Second))
		require.ErrorIs(t, err, sandbox.ErrTimeout)
		require.NotErrorIs(t, err, exec.ErrWaitDelay)
		require.Equal(t, 130, res.ExitCode)
		rec.SetPatience(100 * time.Millisecond)
		require.ErrorIs(t, rec.Close(), exec.ErrWaitDelay)
		require.NoError(t, r.Close())
	})
	t.Run("Panics", func(t *testing.T) {
		t.Parallel()
		rec := recording.Each(newBox(t), func(id string) (io.WriteCloser, error) {
			return panicking{id == "main"}, nil
		})
		j, err := rec.Background(t.Context(), "echo a job")
		require.NoError(t, err)
		res, err := rec.Execute(t.Context(), "echo a")
		require.NoError(t, err)
		require.Equal(t, "a\n", res.Output)
		_, err = j.Wait(t.Context())
		require.NoError(t, err)
		err = rec.Close()
		require.ErrorContains(t, err, "the recording's writer panicked: at a Write")
		require.ErrorContains(t, err, "the recording's writer panicked: at Close")
	})
	t.Run("PanicOfLogTo", func(t *testing.T) { // which is not the recording's
		t.Parallel()
		var file bytes.Buffer
		rec := recording.New(newBox(t), &file)
		j, err := rec.Background(t.Context(), "echo a; exit 3",
			sandbox.LogTo(panicking{sooner: true}))
		require.NoError(t, err)
		res, err := j.Wait(t.Context())
		require.ErrorContains(t, err, "panicked: at a Write")
		require.Equal(t, 3, res.ExitCode)
		require.NoError(t, rec.Close())
		require.Contains(t, file.String(), "exit status 3 after ")
	})
	t.Run("BlocksAtClose", func(t *testing.T) {
		t.Parallel()
		w := blocking{make(chan struct{})}
		defer close(w.ends)
		rec := recording.Each(newBox(t), func(string) (io.WriteCloser, error) { return w, nil })
		rec.SetPatience(100 * time.Millisecond)
		require.ErrorIs(t, rec.Close(), exec.ErrWaitDelay)
	})
}

// A panicking writer panics at its Close, or sooner.
type panicking struct{ sooner bool }

func (p panicking) Write(b []byte) (int, error) {
	if p.sooner {
		panic("at a Write")
	}
	return len(b), nil
}

func (p panicking) Close() error { panic("at Close") }

// A blocking writer takes everything, and its Close blocks.
type blocking struct{ ends chan struct{} }

func (b blocking) Write(p []byte) (int, error) { return len(p), nil }
func (b blocking) Close() error                { <-b.ends; return nil }

// failing takes n bytes.
type failing struct {
	n   int
	err error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, f.err
	}
	return len(p), nil
}
