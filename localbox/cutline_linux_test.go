package localbox

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A cutting host is as slow as a busy machine: its shell reads the first half of a question, and
// the second half comes after two interrupts. Its looks do not see that the shell waits for it.
type cutting struct {
	*host
	armed      atomic.Bool
	half       chan struct{} // closed when the first half has been written
	interrupts atomic.Int32  // since then
	rest       chan struct{} // closed when the second half is to follow
}

type cutProcess struct {
	*process
	host *cutting
}

func (c *cutting) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	started, err := c.host.Start(ctx, p)
	if err != nil {
		return nil, err
	}
	return &cutProcess{started.(*process), c}, nil
}

func (c *cutting) Look(ctx context.Context, p hostapi.Process) (proc.Look, error) {
	l, err := c.host.Look(ctx, p.(*cutProcess).process)
	if c.armed.Load() {
		l.Reads, l.Runs = "", true
	}
	return l, err
}

func (c *cutting) Interrupt(ctx context.Context, p hostapi.Process) (bool, error) {
	sent, err := c.host.Interrupt(ctx, p.(*cutProcess).process)
	if c.interrupts.Add(1) == 2 && c.armed.Swap(false) {
		close(c.rest)
	}
	return sent, err
}

func (c *cutting) Shell(ctx context.Context, p hostapi.Process) (proc.Shell, error) {
	return c.host.Shell(ctx, p.(*cutProcess).process)
}

func (c *cutting) Discard(ctx context.Context, p hostapi.Process) (int, error) {
	return c.host.Discard(ctx, p.(*cutProcess).process)
}

func (c *cutting) Settle(ctx context.Context, p hostapi.Process) (bool, error) {
	return c.host.Settle(ctx, p.(*cutProcess).process)
}

func (p *cutProcess) Commands() io.WriteCloser {
	return &cutCommands{p.process.Commands(), p.host}
}

type cutCommands struct {
	io.WriteCloser
	host *cutting
}

func (w *cutCommands) Write(b []byte) (int, error) {
	at := strings.Index(string(b), "133;D;")
	if at < 0 || !strings.HasPrefix(string(b), "\n{") || !w.host.armed.Load() {
		return w.WriteCloser.Write(b)
	}
	n, err := w.WriteCloser.Write(b[:at])
	if err != nil {
		return n, err
	}
	close(w.host.half)
	<-w.host.rest
	more, err := w.WriteCloser.Write(b[at:])
	return n + more, err
}

// TestCutQuestion checks that a shell keeps its state if an interrupt cuts the question that it
// reads, and it takes the rest for the begin of a line of several.
func TestCutQuestion(t *testing.T) {
	t.Parallel()
	c := &cutting{host: &host{}, half: make(chan struct{}), rest: make(chan struct{})}
	box, err := shellbox.New(t.Context(), c, shellbox.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer box.Close()
	_, err = box.Execute(t.Context(), "X=kept")
	require.NoError(t, err)
	c.armed.Store(true)
	r, err := box.Execute(t.Context(), "sleep 1000", sandbox.Yield(1))
	require.NoError(t, err)
	require.Equal(t, sandbox.Running, r.State)
	select {
	case <-c.half:
	case <-time.After(testenv.Limit):
		t.Fatal("the shell is not asked")
	}
	r, err = box.Interrupt(t.Context())
	require.NoError(t, err)
	require.False(t, r.Restarted, "%+v", r)
	require.Equal(t, 130, r.ExitCode)
	r, err = box.Execute(t.Context(), "echo $X")
	require.NoError(t, err)
	require.Equal(t, "kept\n", r.Output)
}
