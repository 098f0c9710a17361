package session

import (
	"bytes"
	"io"
	"log/slog"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/output"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/phase"
)

// A Timeout that passes at the moment of the command's end bounds the wait for the caller's writer,
// too.
func TestDrainAfterTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked, writer := io.Pipe()
		defer blocked.Close()
		w := &call{
			s: &Session{ended: make(chan struct{})}, c: &command{}, view: &output.View{},
			began: time.Now().Add(-time.Minute),
			o:     sandbox.NewExecOptions(sandbox.Timeout(time.Second)),
			tee:   output.NewTee("Tee", writer),
		}
		w.tee.Announce(1)
		w.tee.Write([]byte("a"))
		w.c.removeCallLocked(w)
		began := time.Now()
		require.ErrorIs(t, w.drain(t.Context()), exec.ErrWaitDelay)
		require.Equal(t, output.WriterDelay, time.Since(began))
	})
}

// Time that is left bounds the wait for the caller's writer only when it has passed.
func TestDrainBeforeTimes(t *testing.T) {
	for _, o := range []sandbox.ExecOption{
		sandbox.Timeout(time.Minute), sandbox.Yield(time.Minute), sandbox.Idle(time.Minute),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := drained(o)
			w.tee = output.NewTee("Tee", slowly(3*output.WriterDelay))
			w.tee.Announce(1)
			w.tee.Write([]byte("a"))
			w.c.removeCallLocked(w)
			began := time.Now()
			require.NoError(t, w.drain(t.Context()))
			require.Equal(t, 3*output.WriterDelay, time.Since(began))
		})
	}
}

// A writer that had to wait for a writer that blocks is not given up with it.
func TestDrainOthers(t *testing.T) {
	for name, end := range map[string]func(w *call){
		"Yield": func(*call) {},
		// the one that blocks is in a hurry, and given up at the same moment
		"Close": func(w *call) {
			w.c.limitWriters()
			close(w.s.ended)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				blocked, writer := io.Pipe()
				defer blocked.Close()
				var other bytes.Buffer
				w := drained(sandbox.Yield(1))
				if name == "Close" {
					w.o.Yield = 0
				}
				w.c.follow([]io.Writer{writer, &other})
				tees, piece := w.c.tees, make([]byte, output.TeeMax)
				for _, t := range tees {
					t.Announce(3 * output.TeeMax)
				}
				go func() {
					for range 3 {
						for _, t := range tees {
							t.Write(piece)
						}
					}
				}()
				synctest.Wait()
				w.c.removeCallLocked(w)
				end(w)
				err := w.drain(t.Context())
				require.ErrorIs(t, err, exec.ErrWaitDelay)
				require.Len(t, err.(interface{ Unwrap() []error }).Unwrap(), 1)
				require.Equal(t, 3*output.TeeMax, other.Len())
				w.c.endTees()
			})
		})
	}
}

// drained returns a call whose command has just printed something.
func drained(opts ...sandbox.ExecOption) *call {
	now := time.Now()
	return &call{
		s: &Session{ended: make(chan struct{})}, c: &command{active: now}, view: &output.View{},
		began: now,
		o:     sandbox.NewExecOptions(opts...),
	}
}

// slowly takes that long for each Write.
type slowly time.Duration

func (s slowly) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(s))
	return len(p), nil
}

// Nothing looks at a job while no call asks about it.
func TestJobUnasked(t *testing.T) {
	s, c := &Session{box: &Box{Log: slog.New(slog.DiscardHandler)}}, newCommand("", true)
	c.phase, c.active = phase.Running, time.Time{}
	w := s.newWatch(c, nil)
	looks := func() bool {
		var pause time.Duration
		_, look := w.shouldLook(&pause)
		return look
	}
	require.False(t, looks())
	call := s.newCallLocked(c, sandbox.NewExecOptions())
	require.True(t, looks())
	c.removeCallLocked(call)
	require.False(t, looks())
}
