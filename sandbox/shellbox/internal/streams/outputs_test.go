package streams_test

import (
	"context"
	"io"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/processes"
	"github.com/sandshell/sandshell/sandbox/shellbox/internal/streams"
)

// A held process has ended; its standard output has not.
type held struct{ stdout io.Reader }

func (h held) Stdout() io.Reader { return h.stdout }
func (h held) Stderr() io.Reader { return nil }

// A stalling host gives no answer, and passes on no output, from begin to end.
type stalling struct {
	hostapi.Processes
	begin, end time.Time
}

func (s stalling) Uptime(ctx context.Context) (time.Duration, error) {
	if now := time.Now(); now.Before(s.begin) || now.After(s.end) {
		return 0, nil
	}
	select {
	case <-time.After(time.Until(s.end)):
		return 0, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// The time in which the host does not answer does not count for Finish.
func TestOutputBehindTheEnd(t *testing.T) {
	for _, c := range []struct {
		name          string
		stalls, stall time.Duration // the host does not answer from then on, for so long
		ends          time.Duration // the output does; 0: it does not
		returns       time.Duration // finish does, at least
		returnsBefore time.Duration
		err           error
	}{
		{name: "Held", returns: streams.WaitDelay, returnsBefore: 2 * streams.WaitDelay,
			err: exec.ErrWaitDelay},
		{name: "Ends", ends: streams.WaitDelay - 100*time.Millisecond,
			returns: streams.WaitDelay - 100*time.Millisecond, returnsBefore: streams.WaitDelay},
		{name: "Paused", stalls: time.Second, stall: 12 * time.Second,
			ends: 13*time.Second + 100*time.Millisecond, returns: 13 * time.Second,
			returnsBefore: 14 * time.Second},
		{name: "PausedAtOnce", stall: 25 * time.Second, ends: 26 * time.Second,
			returns: 26 * time.Second, returnsBefore: 27 * time.Second},
		{name: "PausedLate", stalls: streams.WaitDelay, stall: 12 * time.Second,
			ends: 14*time.Second + 100*time.Millisecond, returns: 14 * time.Second,
			returnsBefore: 15 * time.Second},
		{name: "PausedAndHeld", stalls: time.Second, stall: 12 * time.Second,
			returns: 13 * time.Second, returnsBefore: 16 * time.Second, err: exec.ErrWaitDelay},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r, w := io.Pipe()
				host := processes.New(stalling{begin: began.Add(c.stalls),
					end: began.Add(c.stalls + c.stall)}, nil, nil)
				if c.ends > 0 {
					time.AfterFunc(c.ends, func() { w.Close() })
				}
				o := streams.Copy(held{stdout: r}, nil, nil)
				err := o.Finish(t.Context(), host.Answers)
				took := time.Since(began)
				w.Close()
				o.Abandon()
				require.True(t, o.Done())
				require.ErrorIs(t, err, c.err)
				require.True(t, c.returns <= took && took < c.returnsBefore, "it returned after %v",
					took)
			})
		})
	}
}
