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

// writerLimit is how long a call may take to return although a caller's writer blocks. It is meant
// to find calls that hang: such a call returns within seconds, or in some more on a busy machine.
const writerLimit = 30 * time.Second

// A slow writer needs 2 ms for each Write.
type slow struct{ bytes.Buffer }

func (w *slow) Write(p []byte) (int, error) {
	time.Sleep(2 * time.Millisecond)
	return w.Buffer.Write(p)
}

// blockedTees has writers that are slow or block. They slow down the command, but every call
// returns.
func blockedTees(t *testing.T, b *box) {
	b.test(t, "Slow", func(t *testing.T, sh *shell) {
		sh.mayRestart = true
		want := lines(1, 100_000)
		var tee slow
		res := sh.exec("seq 1 100000; exit 3", sandbox.Tee(&tee))
		exited(t, res, 3)
		require.True(t, strings.HasPrefix(res.Output, want), show(res))
		got := unix(tee.Bytes())
		require.True(t, strings.HasPrefix(got, want), "Tee has got %d bytes of %d", len(got),
			len(want))
	})
	for _, c := range blockedCalls {
		b.test(t, "Blocked/"+c.name, func(t *testing.T, sh *shell) { c.run(t, sh) })
	}
}

// A blockedCall is an Execute whose writer blocks. Something ends it.
type blockedCall struct {
	name, command string
	option        func(io.Writer) sandbox.ExecOption     // Follow; nil: Tee
	after         func(time.Duration) sandbox.ExecOption // ends the call after a time
	ctx           bool                                   // the end of its context ends the call
	end           func(*shell) error                     // ends the call, after the first Write
	want          error                                  // beside ErrWaitDelay
}

const blockedFlood = "yes 'one of very many lines'"

var blockedCalls = []blockedCall{
	{name: "Timeout", command: blockedFlood, after: sandbox.Timeout, want: sandbox.ErrTimeout},
	{name: "TimeoutOfSilence", command: "echo a; sleep 1000", after: sandbox.Timeout,
		want: sandbox.ErrTimeout},
	{name: "TimeoutAfterTheEnd", command: "echo a", after: sandbox.Timeout},
	{name: "Context", command: blockedFlood, ctx: true, want: context.DeadlineExceeded},
	{name: "ContextAfterTheEnd", command: "echo a", ctx: true},
	{name: "Yield", command: blockedFlood, after: sandbox.Yield},
	{name: "Interrupt", command: blockedFlood, end: tryInterrupt},
	{name: "Close", command: blockedFlood, want: sandbox.ErrClosed, end: tryClose},
	{name: "Follow/Timeout", command: blockedFlood, option: sandbox.Follow, after: sandbox.Timeout,
		want: sandbox.ErrTimeout},
	{name: "Follow/ContextAfterTheEnd", command: "echo a", option: sandbox.Follow, ctx: true},
	{name: "Follow/Interrupt", command: blockedFlood, option: sandbox.Follow,
		end: func(sh *shell) error {
			if err := tryInterrupt(sh); !errors.Is(err, exec.ErrWaitDelay) {
				return fmt.Errorf("error of Interrupt: got %v, want exec.ErrWaitDelay", err)
			}
			return nil
		}},
	{name: "Follow/CloseAfterTheEnd", command: "echo a", option: sandbox.Follow,
		want: sandbox.ErrClosed, end: tryClose},
}

func tryInterrupt(sh *shell) error { return errorOf(attempt("Interrupt", sh.interruptCall())) }

func tryClose(sh *shell) error {
	sh.closed = true
	return errorOf(attempt("Close", closeCall(sh)))
}

func (c blockedCall) run(t *testing.T, sh *shell) {
	g := newGate()
	t.Cleanup(g.open)
	returned := make(chan error, 1)
	var begin time.Time
	var err error
	if c.end != nil {
		go func() { returned <- c.execute(sh, g, 0) }()
		<-g.reached
		begin = time.Now()
		require.NoError(t, c.end(sh))
		err = <-returned
	} else {
		// a busy machine may need more time for the first output
		for limit := 300 * time.Millisecond; ; limit *= 3 {
			begin = time.Now().Add(limit)
			if err = c.execute(sh, g, limit); g.isReached() {
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
	if c.name == "Yield" {
		sh.interrupt()
	}
}

func (c blockedCall) execute(sh *shell, w io.Writer, limit time.Duration) error {
	option := c.option
	if option == nil {
		option = sandbox.Tee
	}
	opts := []sandbox.ExecOption{option(w)}
	if c.after != nil {
		opts = append(opts, c.after(limit))
	}
	return errorOf(attempt("Execute", func(ctx context.Context) (*sandbox.Result, error) {
		if c.ctx {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		return sh.Execute(ctx, c.command, opts...)
	}))
}

var blockedPrograms = []named{{"Flood", "yes"}, {"Silent", "echo a; exec sleep 1000"},
	{"Ended", "echo a"}}

// jobWriters has jobs whose writer blocks. Kill returns nevertheless.
func jobWriters(t *testing.T, b *box) {
	for _, c := range blockedPrograms {
		parallel(t, c.name, func(t *testing.T) {
			g := newGate()
			t.Cleanup(g.open)
			j := b.start(t, c.command, sandbox.LogTo(g))
			<-g.reached
			begin := time.Now()
			_, err := within(b, t, "Kill", noResult(j.Kill))
			require.NoError(t, err)
			require.Less(t, time.Since(begin), writerLimit, "time to return")
			res, err := within(b, t, "Wait", j.Wait)
			require.ErrorIs(t, err, exec.ErrWaitDelay)
			require.Equal(t, sandbox.Exited, res.State)
			require.NoError(t, j.Forget())
		})
	}
}

// panics has writers that panic. The call returns an error, and the command goes on.
func panics(t *testing.T, b *box) {
	const command = "seq 1 20000; (exit 3)"
	for name, option := range map[string]func(io.Writer) sandbox.ExecOption{"Tee": sandbox.Tee,
		"Follow": sandbox.Follow} {
		b.test(t, name, func(t *testing.T, sh *shell) {
			res, err := within(b, t, "Execute", sh.executeCall(command, option(panicking{})))
			require.ErrorContains(t, err, "the writer of "+name+" panicked: no, thanks")
			exitedWith(t, res, 3, lines(1, 20000))
		})
	}
	parallel(t, "LogTo", func(t *testing.T) {
		res, err := within(b, t, "Wait", b.start(t, command, sandbox.LogTo(panicking{})).Wait)
		require.ErrorContains(t, err, "the writer of LogTo panicked: no, thanks")
		exitedWith(t, res, 3, lines(1, 20000))
	})
}

// panicking is a writer.
type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("no, thanks") }

// runWriters gives Run writers that panic.
func runWriters(t *testing.T, b *box) {
	for name, cmd := range map[string]*sandbox.Cmd{
		"Stdout": {Args: []string{"seq", "1", "20000"}, Stdout: panicking{}},
		"Stderr": {Args: inShell("seq 1 20000 >&2"), Stderr: panicking{}},
	} {
		parallel(t, "Panics/"+name, func(t *testing.T) {
			code, err := b.tryRun(t, cmd)
			require.ErrorContains(t, err, "Cmd."+name+" panicked: no, thanks")
			require.Zero(t, code)
		})
	}
	parallel(t, "Slow", func(t *testing.T) {
		var stdout, stderr slow
		require.Equal(t, 3, b.mustRun(t, &sandbox.Cmd{Stdout: &stdout, Stderr: &stderr,
			Args: inShell("seq 1 100000; seq 1 1000 >&2; exit 3")}))
		same(t, lines(1, 100_000), stdout.String())
		same(t, lines(1, 1000), stderr.String())
	})
	for _, c := range blockedPrograms {
		parallel(t, "Blocked/"+c.name, func(t *testing.T) {
			g := newGate()
			t.Cleanup(g.open)
			begin := time.Now()
			_, err := within(b, t, "Run", func(ctx context.Context) (int, error) {
				ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				return b.Run(ctx, &sandbox.Cmd{Args: inShell(c.command), Stdout: g})
			})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, time.Since(begin), writerLimit, "time to return")
		})
	}
}
