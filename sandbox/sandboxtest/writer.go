package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/sandbox"
)

// writerLimit is how long a call may go on for a writer that takes nothing when something else
// wants it to return. It is against hanging: such a call returns within seconds, and on a busy
// machine in some more.
const writerLimit = 30 * time.Second

// A slow writer takes its time for each Write.
type slow struct{ bytes.Buffer }

func (w *slow) Write(p []byte) (int, error) {
	time.Sleep(2 * time.Millisecond)
	return w.Buffer.Write(p)
}

// blockedTees: a caller's writer holds up its command, and nothing that ends the call.
func blockedTees(t *testing.T, b *box) {
	t.Parallel()
	t.Run("Slow", func(t *testing.T) { // loses nothing
		t.Parallel()
		sh := b.open(t)
		want := lines(1, 100_000)
		var tee slow
		res := sh.exec("seq 1 100000; exit 3", sandbox.Tee(&tee))
		exited(t, res, 3)
		require.True(t, strings.HasPrefix(res.Output, want), show(res))
		require.True(t, strings.HasPrefix(unix(tee.Bytes()), want), "%d bytes of %d came",
			len(unix(tee.Bytes())), len(want))
		sh.usable()
	})
	const flood = "yes 'one of very many lines'"
	interrupts := func(sh *shell) error {
		_, err := attempt("Interrupt", sh.interrupts())
		return err
	}
	closes := func(sh *shell) error {
		_, err := attempt("Close", empty(func(context.Context) error { return sh.Close() }))
		return err
	}
	for _, c := range []struct {
		name, command string
		option        func(io.Writer) sandbox.ExecOption     // nil: Tee
		after         func(time.Duration) sandbox.ExecOption // ends the call after that time
		ctx           bool                                   // its ctx does
		end           func(*shell) error                     // that does, once there is output
		want          error
	}{
		{name: "Timeout", command: flood, after: sandbox.Timeout, want: sandbox.ErrTimeout},
		{name: "TimeoutOfSilence", command: "echo a; sleep 1000", after: sandbox.Timeout,
			want: sandbox.ErrTimeout},
		{name: "TimeoutAfterTheEnd", command: "echo a", after: sandbox.Timeout},
		{name: "Context", command: flood, ctx: true, want: context.DeadlineExceeded},
		{name: "ContextAfterTheEnd", command: "echo a", ctx: true},
		{name: "Yield", command: flood, after: sandbox.Yield},
		{name: "Interrupt", command: flood, end: interrupts},
		{name: "Close", command: flood, want: sandbox.ErrClosed, end: closes},
		{name: "Follow/Timeout", command: flood, option: sandbox.Follow, after: sandbox.Timeout,
			want: sandbox.ErrTimeout},
		{name: "Follow/ContextAfterTheEnd", command: "echo a", option: sandbox.Follow, ctx: true},
		{name: "Follow/Interrupt", command: flood, option: sandbox.Follow,
			end: func(sh *shell) error {
				if err := interrupts(sh); !errors.Is(err, exec.ErrWaitDelay) {
					return fmt.Errorf("got %v of Interrupt", err)
				}
				return nil
			}},
		{name: "Follow/CloseAfterTheEnd", command: "echo a", option: sandbox.Follow,
			want: sandbox.ErrClosed, end: closes},
	} {
		t.Run("Blocked/"+c.name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			g := newGate()
			t.Cleanup(g.open)
			option := c.option
			if option == nil {
				option = sandbox.Tee
			}
			returned := make(chan error, 1)
			var begin time.Time
			execute := func(limit time.Duration) {
				_, err := attempt("Execute", func(ctx context.Context) (*sandbox.Result, error) {
					opts := []sandbox.ExecOption{option(g)}
					if c.after != nil {
						opts = append(opts, c.after(limit))
					}
					if c.ctx {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, limit)
						defer cancel()
					}
					return sh.Execute(ctx, c.command, opts...)
				})
				returned <- err
			}
			var err error
			if c.end != nil {
				go execute(0)
				<-g.reached
				begin = time.Now()
				require.NoError(t, c.end(sh))
				err = <-returned
			} else {
				// a busy machine has printed nothing after so long
				for limit := 300 * time.Millisecond; ; limit *= 3 {
					begin = time.Now().Add(limit)
					go execute(limit)
					if err = <-returned; g.isReached() {
						break
					}
					if c.name == "Yield" {
						sh.interrupt()
					}
				}
			}
			require.Less(t, time.Since(begin), writerLimit, "time to return")
			require.ErrorIs(t, err, exec.ErrWaitDelay)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			if errors.Is(err, sandbox.ErrClosed) {
				return
			}
			if c.name == "Yield" {
				sh.interrupt()
			}
			sh.lives()
		})
	}
}

// jobWriters: a job is held up by its writer until Kill.
func jobWriters(t *testing.T, b *box) {
	t.Parallel()
	for _, c := range []named{{"Flood", "yes"}, {"Silent", "echo a; exec sleep 1000"},
		{"Ended", "echo a"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			t.Cleanup(g.open)
			j := b.start(t, c.command, sandbox.LogTo(g))
			<-g.reached
			begin := time.Now()
			_, err := within(b, t, "Kill", empty(j.Kill))
			require.NoError(t, err)
			require.Less(t, time.Since(begin), writerLimit, "time to return")
			res, err := within(b, t, "Wait", j.Wait)
			require.ErrorIs(t, err, exec.ErrWaitDelay)
			require.Equal(t, sandbox.Exited, res.State)
			require.NoError(t, j.Forget())
		})
	}
}

// panics: a caller's writer that panics is an error of its calls. The command goes on.
func panics(t *testing.T, b *box) {
	t.Parallel()
	const command = "seq 1 20000; (exit 3)"
	for name, option := range map[string]func(io.Writer) sandbox.ExecOption{"Tee": sandbox.Tee,
		"Follow": sandbox.Follow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sh := b.open(t)
			res, err := within(b, t, "Execute", sh.executes(command, option(panicking{})))
			require.ErrorContains(t, err, "the writer of "+name+" panicked: no, thanks")
			exited(t, res, 3)
			same(t, lines(1, 20000), res.Output)
			sh.lives()
		})
	}
	t.Run("LogTo", func(t *testing.T) {
		t.Parallel()
		res, err := within(b, t, "Wait", b.start(t, command, sandbox.LogTo(panicking{})).Wait)
		require.ErrorContains(t, err, "the writer of LogTo panicked: no, thanks")
		exited(t, res, 3)
		same(t, lines(1, 20000), res.Output)
	})
}

// A panicking writer panics.
type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("no, thanks") }

// runWriters: the same of Run.
func runWriters(t *testing.T, b *box) {
	t.Parallel()
	for name, cmd := range map[string]*sandbox.Cmd{
		"Stdout": {Args: []string{"seq", "1", "20000"}, Stdout: panicking{}},
		"Stderr": {Args: []string{"sh", "-c", "seq 1 20000 >&2"}, Stderr: panicking{}},
	} {
		t.Run("Panics/"+name, func(t *testing.T) {
			t.Parallel()
			code, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
				return b.Run(ctx, cmd)
			})
			require.ErrorContains(t, err, "Cmd."+name+" panicked: no, thanks")
			require.Zero(t, code)
		})
	}
	t.Run("Slow", func(t *testing.T) {
		t.Parallel()
		var stdout, stderr slow
		require.Equal(t, 3, b.cmd(t, &sandbox.Cmd{Args: []string{"sh", "-c",
			"seq 1 100000; seq 1 1000 >&2; exit 3"}, Stdout: &stdout, Stderr: &stderr}))
		same(t, lines(1, 100_000), stdout.String())
		same(t, lines(1, 1000), stderr.String())
	})
	for _, c := range []named{{"Flood", "yes"}, {"Silent", "echo a; exec sleep 1000"},
		{"Ended", "echo a"}} {
		t.Run("Blocked/"+c.name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			t.Cleanup(g.open)
			begin := time.Now()
			_, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
				ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				return b.Run(ctx, &sandbox.Cmd{Args: []string{"sh", "-c", c.command}, Stdout: g})
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, time.Since(begin), writerLimit, "time to return")
		})
	}
}
