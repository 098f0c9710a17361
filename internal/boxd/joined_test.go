//go:build linux

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
	"github.com/stretchr/testify/require"
)

// joinedBoxes returns two boxes of two programs on one boxd, which keeps logs.
func joinedBoxes(t *testing.T) (w *way, first, second *shellbox.Box) {
	w = &way{b: startBoxWith(t, []string{"-keep"}, nil)}
	options := shellbox.Options{Dir: w.b.dir, Shell: []string{"bash"},
		Logger: slog.New(slog.DiscardHandler)}
	first, err := shellbox.New(t.Context(), connect(t, w, false), options)
	require.NoError(t, err)
	t.Cleanup(func() { first.Close() })
	second, err = shellbox.Join(t.Context(), connect(t, w, true), options)
	require.NoError(t, err)
	t.Cleanup(func() { second.Close() })
	return w, first, second
}

// TestJoinedInterrupt interrupts a session in which a call of another program is under way.
func TestJoinedInterrupt(t *testing.T) {
	ctx := t.Context()
	w, first, second := joinedBoxes(t)
	mark := filepath.Join(w.b.dir, "on")
	type ending struct {
		r   *sandbox.Result
		err error
	}
	ended := make(chan ending, 1)
	go func() {
		r, err := first.Execute(ctx, "cd /; touch "+mark+"; sleep 1000")
		ended <- ending{r, err}
	}()
	waitFor(t, "the command runs", func() bool { _, err := os.Stat(mark); return err == nil })
	_, err := second.Execute(ctx, "echo no")
	require.ErrorIs(t, err, sandbox.ErrBusy)
	r, err := second.Interrupt(ctx)
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, r.State)
	require.Equal(t, 130, r.ExitCode)
	require.Equal(t, "/", r.Cwd)
	e := <-ended
	require.NoError(t, e.err)
	require.Equal(t, 130, e.r.ExitCode)
	_, err = second.Interrupt(ctx)
	require.ErrorIs(t, err, sandbox.ErrIdle)

	// What ignores it is for the other program.
	go func() {
		r, err := first.Execute(ctx, "trap '' INT; rm "+mark+"; until [ -e "+mark+" ]; do "+
			"sleep 0.01; done; trap - INT; false")
		ended <- ending{r, err}
	}()
	waitFor(t, "the command runs", func() bool { _, err := os.Stat(mark); return err != nil })
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = second.Interrupt(soon)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	e = <-ended
	require.NoError(t, e.err)
	require.Equal(t, 1, e.r.ExitCode)
}

// TestJoinedQuestion answers a question in a session that another program has left at it.
func TestJoinedQuestion(t *testing.T) {
	ctx := t.Context()
	_, first, second := joinedBoxes(t)
	r, err := first.Execute(ctx, "read -r -p 'who? ' who; echo it is $who")
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State)
	screen, err := second.Screen(ctx)
	require.NoError(t, err)
	require.Contains(t, screen.Lines[0], "who?")
	r, err = second.Input(ctx, "me\n")
	require.NoError(t, err)
	require.Contains(t, r.Output, "it is me\n")
	_, err = first.Wait(ctx)
	require.ErrorIs(t, err, sandbox.ErrIdle, "the result has been given")
}

// TestJoinedForget forgets a job in one program. The others no longer list it.
func TestJoinedForget(t *testing.T) {
	ctx := t.Context()
	_, first, second := joinedBoxes(t)
	job, err := first.Background(ctx, "echo done")
	require.NoError(t, err)
	same, ok := second.Job(job.ID())
	require.True(t, ok)
	_, err = same.Wait(ctx)
	require.NoError(t, err)
	_, err = job.Wait(ctx)
	require.NoError(t, err)
	require.Len(t, second.Jobs(), 1)
	require.NoError(t, job.Forget())
	require.Empty(t, second.Jobs())
	_, ok = second.Job(job.ID())
	require.False(t, ok)
	_, _, err = same.Logs(ctx, 0)
	require.ErrorIs(t, err, sandbox.ErrClosed)
}

// TestJoinedRestart uses a session of another program whose shell ends and is started again, over
// and over.
func TestJoinedRestart(t *testing.T) {
	ctx := t.Context()
	_, first, second := joinedBoxes(t)
	mine, err := first.Open(ctx)
	require.NoError(t, err)
	theirs, ok := second.Session(mine.ID())
	require.True(t, ok)
	for range 5 {
		ended := make(chan error, 1)
		go func() {
			_, err := mine.Execute(ctx, "exit 1")
			ended <- err
		}()
		for waiting := true; waiting; {
			_, err := theirs.Execute(ctx, ":")
			require.NotErrorIs(t, err, sandbox.ErrClosed)
			select {
			case <-ended:
				waiting = false
			default:
			}
		}
	}
	require.NoError(t, mine.Close())
	_, err = theirs.Execute(ctx, ":")
	require.ErrorIs(t, err, sandbox.ErrClosed)
}

// TestGivenResult has a program die before it has got a result, and after that. Wait of the next
// one has what was not given.
func TestGivenResult(t *testing.T) {
	ctx := t.Context()
	w := &way{b: startBoxWith(t, []string{"-keep"}, nil)}
	options := shellbox.Options{Dir: w.b.dir, Shell: []string{"bash"},
		Logger: slog.New(slog.DiscardHandler)}
	h := connect(t, w, false)
	first, err := shellbox.New(ctx, h, options)
	require.NoError(t, err)
	die := func() { // as by SIGKILL: nothing is said
		h.Abandon()
		h.Close()
		first.Close()
	}
	r, err := first.Execute(ctx, "echo begun; until [ -e go ]; do sleep 0.01; done; "+
		"echo not given; exit_() { return 7; }; exit_", sandbox.Until(regexp.MustCompile("begun")))
	require.NoError(t, err)
	require.Equal(t, sandbox.Running, r.State)
	die()
	require.NoError(t, os.WriteFile(filepath.Join(w.b.dir, "go"), nil, 0o600))
	for _, joins := range []bool{false, true} {
		h = connect(t, w, joins)
		if joins {
			first, err = shellbox.Join(ctx, h, options)
		} else {
			first, err = shellbox.Attach(ctx, h, options)
		}
		require.NoError(t, err)
		r, err := first.Wait(ctx)
		if joins {
			require.ErrorIs(t, err, sandbox.ErrIdle, "it has been given: %+v", r)
			break
		}
		require.NoError(t, err)
		require.Equal(t, 7, r.ExitCode)
		require.Equal(t, "begun\nnot given\n", r.Output)
		waitFor(t, "the note says that it was given", func() bool {
			listed, err := h.Listed(ctx)
			require.NoError(t, err)
			var n struct{ Given int }
			return json.Unmarshal([]byte(listed[0].Note), &n) == nil && n.Given > 0
		})
		die()
	}
	require.NoError(t, first.Close())
}
