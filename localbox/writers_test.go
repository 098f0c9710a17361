package localbox_test

import (
	"context"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

// A stuck writer blocks until its end, or the test's.
type stuck struct {
	begun, ends chan struct{}
	end         func()
}

func newStuck(t *testing.T) *stuck {
	ends := make(chan struct{})
	s := &stuck{make(chan struct{}, 1), ends, sync.OnceFunc(func() { close(ends) })}
	t.Cleanup(s.end)
	return s
}

func (s *stuck) Write(p []byte) (int, error) {
	select {
	case s.begun <- struct{}{}:
	default:
	}
	<-s.ends
	return len(p), nil
}

// TestCloseWithStuckWriters checks that Close, and calls that are under way, return even if the
// callers' writers block.
func TestCloseWithStuckWriters(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"yes", "echo a"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			box := open(t, localbox.Config{})
			errs := map[string]chan error{}
			begin := func(name string, f func(io.Writer) error) {
				w, done := newStuck(t), make(chan error, 1)
				errs[name] = done
				go func() { done <- f(w) }()
				<-w.begun
			}
			for name, option := range map[string]func(io.Writer) sandbox.ExecOption{
				"Tee": sandbox.Tee, "Follow": sandbox.Follow} {
				s, err := box.Open(t.Context())
				require.NoError(t, err)
				begin(name, func(w io.Writer) error {
					_, err := s.Execute(t.Context(), command, option(w))
					return err
				})
			}
			begin("LogTo", func(w io.Writer) error {
				j, err := box.Background(t.Context(), command, sandbox.LogTo(w))
				if err == nil {
					<-j.Done()
					_, err = j.Wait(t.Context())
				}
				return err
			})
			begin("Run", func(w io.Writer) error {
				_, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", command},
					Stdout: w})
				return err
			})
			closed := make(chan error, 1)
			go func() { closed <- box.Close() }()
			late := time.After(testenv.Limit)
			for name, done := range errs {
				select {
				case err := <-done:
					// The call with Tee returns the Result of a command that has ended.
					if name != "Tee" || command == "yes" {
						require.ErrorIs(t, err, sandbox.ErrClosed, name)
					}
					if name == "Tee" || name == "Follow" {
						require.ErrorIs(t, err, exec.ErrWaitDelay, name)
					}
				case <-late:
					require.Fail(t, name+" has not returned")
				}
			}
			select {
			case err := <-closed:
				require.NoError(t, err)
			case <-late:
				require.Fail(t, "Close has not returned")
			}
		})
	}
}

// TestStuckFollowBetweenCalls checks that calls return even if the writer of Follow blocks, and
// that the session goes on without the writer.
func TestStuckFollowBetweenCalls(t *testing.T) {
	t.Parallel()
	box := open(t, localbox.Config{})
	w := newStuck(t)
	res, err := box.Execute(t.Context(), "yes", sandbox.Follow(w), sandbox.Yield(time.Millisecond))
	require.Equal(t, sandbox.Running, res.State)
	for err == nil { // until there is output to write
		_, err = box.Wait(t.Context(), sandbox.Yield(time.Millisecond))
	}
	require.ErrorIs(t, err, exec.ErrWaitDelay)
	res, err = box.Interrupt(t.Context())
	require.ErrorIs(t, err, exec.ErrWaitDelay, "each call whose output has not reached the "+
		"writer must say so")
	require.Equal(t, 130, res.ExitCode)
	res, err = box.Execute(t.Context(), "echo on")
	require.NoError(t, err)
	require.Equal(t, "on\n", res.Output)
}

// TestWriterEndsGoroutine checks that calls return even if a writer or a reader calls
// runtime.Goexit, as a test's FailNow does.
func TestWriterEndsGoroutine(t *testing.T) {
	t.Parallel()
	box := open(t, localbox.Config{})
	res, err := box.Execute(t.Context(), "seq 1 100000; (exit 3)", sandbox.Tee(exiting{}),
		sandbox.Follow(exiting{}))
	require.ErrorContains(t, err, "the writer of Tee has ended its goroutine")
	require.ErrorContains(t, err, "the writer of Follow has ended its goroutine")
	require.Equal(t, 3, res.ExitCode)
	code, err := box.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c",
		"seq 1 100000; exit 3"}, Stdout: exiting{}})
	require.ErrorContains(t, err, "Cmd.Stdout has ended its goroutine")
	require.Equal(t, 3, code)
	_, err = box.Run(t.Context(), &sandbox.Cmd{Args: []string{"cat"}, Stdin: exiting{}})
	require.ErrorContains(t, err, "Cmd.Stdin has ended its goroutine")
}

type exiting struct{}

func (exiting) Read([]byte) (int, error) {
	runtime.Goexit()
	return 0, nil
}

func (e exiting) Write(p []byte) (int, error) { return e.Read(p) }

// TestLoggerPanics checks that a box goes on if its Logger panics.
func TestLoggerPanics(t *testing.T) {
	t.Parallel()
	box := open(t, localbox.Config{Logger: slog.New(panicking{slog.DiscardHandler})})
	res, err := box.Execute(t.Context(), "exit 3") // the shell's end is logged
	require.NoError(t, err)
	require.True(t, res.Restarted)
	res, err = box.Execute(t.Context(), "echo on")
	require.NoError(t, err)
	require.Equal(t, "on\n", res.Output)
}

type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("no, thanks") }
