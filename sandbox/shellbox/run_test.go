package shellbox

import (
	"context"
	"io"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/stretchr/testify/require"
)

// A held process has ended; its standard output has not.
type held struct {
	Process
	stdout io.Reader
}

func (h held) Stdout() io.Reader { return h.stdout }
func (h held) Stderr() io.Reader { return nil }

// A stalling host does not answer, and lets no output through, from begin to end.
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

// Run waits for the end of the output for as long as the host does not answer, and after that for
// as long as ever.
func TestOutputBehindTheEnd(t *testing.T) {
	for _, c := range []struct {
		name          string
		stalls, stall time.Duration // the host does not answer from then on, for so long
		ends          time.Duration // the output does; 0: it does not
		returns       time.Duration // finish does, at least
		returnsBefore time.Duration
		err           error
	}{
		{name: "Held", returns: runDelay, returnsBefore: 2 * runDelay, err: exec.ErrWaitDelay},
		{name: "Ends", ends: runDelay - 100*time.Millisecond,
			returns: runDelay - 100*time.Millisecond, returnsBefore: runDelay},
		{name: "Paused", stalls: time.Second, stall: 12 * time.Second,
			ends: 13*time.Second + 100*time.Millisecond, returns: 13 * time.Second,
			returnsBefore: 14 * time.Second},
		{name: "PausedAtOnce", stall: 25 * time.Second, ends: 26 * time.Second,
			returns: 26 * time.Second, returnsBefore: 27 * time.Second},
		{name: "PausedLate", stalls: runDelay, stall: 12 * time.Second,
			ends: 14*time.Second + 100*time.Millisecond, returns: 14 * time.Second,
			returnsBefore: 15 * time.Second},
		{name: "PausedAndHeld", stalls: time.Second, stall: 12 * time.Second,
			returns: 13 * time.Second, returnsBefore: 16 * time.Second, err: exec.ErrWaitDelay},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r, w := io.Pipe()
				b := &Box{processes: stalling{begin: began.Add(c.stalls),
					end: began.Add(c.stalls + c.stall)}}
				if c.ends > 0 {
					time.AfterFunc(c.ends, func() { w.Close() })
				}
				o := copyOutputs(held{stdout: r}, nil, nil)
				err := o.finish(t.Context(), b.answers)
				took := time.Since(began)
				w.Close()
				<-o.copied
				require.ErrorIs(t, err, c.err)
				require.True(t, c.returns <= took && took < c.returnsBefore, "it returned after %v",
					took)
			})
		})
	}
}
