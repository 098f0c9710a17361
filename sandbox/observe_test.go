package sandbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An audit is an Observer that keeps a line for each of its calls.
type audit struct {
	mu    sync.Mutex
	lines []string
}

func (a *audit) add(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

func (a *audit) Open(id string, o sandbox.SessionOptions) sandbox.SessionObserver {
	a.add("%s: open", id)
	return audited{a, id}
}

func (a *audit) Background(ctx context.Context, command string,
	_ sandbox.SessionOptions) (context.Context, sandbox.JobObserver) {
	return ctx, auditedCommand{audited{a, command}}
}

func (a *audit) Run(ctx context.Context, cmd *sandbox.Cmd) (context.Context, func(int, error)) {
	return ctx, func(code int, _ error) { a.add("run %v: %d", cmd.Args, code) }
}

func (a *audit) Close() error { a.add("close"); return nil }

// An audited observes a session, a command or a job.
type audited struct {
	*audit
	name string
}

func (a audited) Execute(ctx context.Context, command string) (context.Context,
	sandbox.CommandObserver) {
	return ctx, auditedCommand{audited{a.audit, a.name + ": " + command}}
}
func (a audited) Resize(rows, cols int)       { a.add("%s: resize %d %d", a.name, rows, cols) }
func (a audited) Close()                      { a.add("%s: close", a.name) }
func (a audited) Write(p []byte) (int, error) { return len(p), nil }
func (a audited) Started(id string)           { a.add("%s: %s", id, a.name) }
func (a audited) End(res *sandbox.Result, err error) {
	if res != nil {
		a.add("%s: %v %d", a.name, res.State, res.ExitCode)
	} else {
		a.add("%s: %v", a.name, err)
	}
}

func (a audited) Input(text string, awaits sandbox.InputKind) {
	a.add("%s: input for %v", a.name, awaits)
}

type auditedCommand struct{ audited }

func (a auditedCommand) Result(res *sandbox.Result) { a.add("%s: %v", a.name, res.State) }

func TestObserve(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	inner, err := localbox.New(ctx, localbox.Config{})
	require.NoError(t, err)
	var a audit
	box := sandbox.Observe(inner, &a)
	defer box.Close()
	_, err = box.Execute(ctx, "exit 3")
	require.NoError(t, err)
	_, err = box.Run(ctx, &sandbox.Cmd{Args: []string{"true"}})
	require.NoError(t, err)
	s, err := box.Open(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Resize(ctx, 30, 90))

	// Session and Sessions return the same session as Open. A session that was opened past the
	// observer is observed once one of them has returned it.
	same, ok := box.Session(s.ID())
	require.True(t, ok)
	require.Same(t, s, same)
	_, err = inner.Open(ctx)
	require.NoError(t, err)
	sessions := box.Sessions()
	require.Len(t, sessions, 3)
	require.Equal(t, "main", sessions[0].ID())
	require.Same(t, s, sessions[1])
	_, err = sessions[2].Execute(ctx, "exit 4")
	require.NoError(t, err)
	_, ok = box.Session("nobody")
	require.False(t, ok)

	// The Close of the main session is not the sandbox's.
	_, err = sessions[0].Execute(ctx, "exit 5")
	require.NoError(t, err)
	require.NoError(t, sessions[0].Close())
	_, err = box.Execute(ctx, "true")
	require.ErrorIs(t, err, sandbox.ErrClosed)
	job, err := box.Background(ctx, "exit 6")
	require.NoError(t, err)
	<-job.Done()
	require.NoError(t, job.Forget())
	const twoLines = "read -r x; read -r x; exit 7"
	job, err = box.Background(ctx, twoLines)
	require.NoError(t, err)
	_, err = job.Until(ctx)
	require.NoError(t, err)
	require.NoError(t, job.Resize(ctx, 31, 91))
	require.NoError(t, job.Input(ctx, "x\n"))
	require.NoError(t, job.Input(ctx, "x\n"))
	_, err = job.Until(ctx)
	require.NoError(t, err)
	require.NoError(t, box.Close())
	require.Equal(t, []string{
		"main: open", "main: exit 3: exited 3", "run [true]: 0", "session-1: open",
		"session-1: resize 30 90", "session-2: open", "session-2: exit 4: exited 4",
		"main: exit 5: exited 5", "main: close", a.lines[9], "job-1: exit 6",
		"exit 6: exited 6", "job-2: " + twoLines, twoLines + ": waiting",
		twoLines + ": resize 31 91",
		twoLines + ": input for line", twoLines + ": input for none", twoLines + ": exited 7",
		"close",
	}, a.lines)
	require.Contains(t, a.lines[9], "main: true: ")
}

// TestObserveRefused: a command that is refused changes nothing of what is known of the unfinished
// one.
func TestObserveRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	inner, err := localbox.New(ctx, localbox.Config{})
	require.NoError(t, err)
	var a audit
	box := sandbox.Observe(inner, &a)
	defer box.Close()
	_, err = box.Execute(ctx, "read -r x")
	require.NoError(t, err)
	_, err = box.Execute(ctx, "true")
	require.ErrorIs(t, err, sandbox.ErrBusy)
	_, err = box.Input(ctx, "x\n")
	require.NoError(t, err)
	require.Contains(t, a.lines, "main: input for line")
}

// TestObserveNil: Observe panics, and names the argument that is nil.
func TestObserveNil(t *testing.T) {
	require.PanicsWithValue(t, "sandbox: Observe: the box is nil", func() {
		sandbox.Observe(nil, &audit{})
	})
	require.PanicsWithValue(t, "sandbox: Observe: the observer is nil", func() {
		sandbox.Observe(&localbox.LocalBox{}, nil)
	})
}
