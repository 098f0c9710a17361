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

// An audit is an Observer that keeps a line for each thing that happens.
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
	return ctx, auditedJob{audited{a, command}}
}

func (a *audit) Run(ctx context.Context, cmd *sandbox.Cmd) (context.Context, func(int, error)) {
	return ctx, func(code int, _ error) { a.add("run %v: %d", cmd.Args, code) }
}

func (a *audit) Close() error { a.add("close"); return nil }

// An audited is a session; a command and a job have some of it.
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

type auditedJob struct{ audited }

func (a auditedJob) Input(text string) { a.add("%s: input", a.name) }

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

	// A session is the same one however it is asked for, and one that was opened past the observer
	// is observed as soon as it is asked for.
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
	require.NoError(t, box.Close())
	require.Equal(t, []string{
		"main: open", "main: exit 3: exited 3", "run [true]: 0", "session-1: open",
		"session-1: resize 30 90", "session-2: open", "session-2: exit 4: exited 4",
		"main: exit 5: exited 5", "main: close", a.lines[9], "job-1: exit 6",
		"exit 6: exited 6", "close",
	}, a.lines)
	require.Contains(t, a.lines[9], "main: true: ")
}

// TestObserveNil: what is nil is named at once.
func TestObserveNil(t *testing.T) {
	require.PanicsWithValue(t, "sandbox: Observe: the box is nil", func() {
		sandbox.Observe(nil, &audit{})
	})
	require.PanicsWithValue(t, "sandbox: Observe: the observer is nil", func() {
		sandbox.Observe(&localbox.LocalBox{}, nil)
	})
}
