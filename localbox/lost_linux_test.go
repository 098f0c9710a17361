package localbox

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A losing host is lost when the box calls Discard, after a command has ended.
type losing struct {
	*host
	lost  chan struct{} // closed when the host is lost
	asked chan struct{} // closed when the box calls Lost
	told  chan struct{} // closed when Lost may return
}

func (l *losing) Start(ctx context.Context, p shellbox.Program) (shellbox.Process, error) {
	started, err := l.host.Start(ctx, p)
	if err != nil {
		return nil, err
	}
	return &unreachable{started.(*process), l}, nil
}

func (l *losing) Look(ctx context.Context, p hostapi.Process) (proc.Look, error) {
	return l.host.Look(ctx, p.(*unreachable).process)
}

func (l *losing) Settle(ctx context.Context, p hostapi.Process) (bool, error) {
	return l.host.Settle(ctx, p.(*unreachable).process)
}

func (l *losing) Discard(ctx context.Context, p hostapi.Process) (int, error) {
	close(l.lost)
	p.(shellbox.Process).Close()
	<-l.asked
	return 0, nil
}

func (l *losing) Lost(context.Context) error {
	close(l.asked)
	<-l.told
	return &sandbox.LostError{Box: "LocalBox", Reason: "the test says so"}
}

// An unreachable process returns no status once its host is lost.
type unreachable struct {
	*process
	on *losing
}

func (u *unreachable) Wait() (shellbox.Status, error) {
	status, err := u.process.Wait()
	select {
	case <-u.on.lost:
		return shellbox.Status{}, errors.New("lost")
	default:
		return status, err
	}
}

// TestLostAfterTheEnd checks the result of a command that ends just before the host is lost: it
// has the command's status, and Restarted is false.
func TestLostAfterTheEnd(t *testing.T) {
	h := &losing{host: &host{}, lost: make(chan struct{}), asked: make(chan struct{}),
		told: make(chan struct{})}
	box, err := shellbox.New(t.Context(), h, shellbox.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	r, err := box.Execute(ctx, "read x")
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State)
	r, err = box.Input(ctx, "answer\n")
	require.NoError(t, err)
	require.Equal(t, sandbox.Exited, r.State)
	require.Zero(t, r.ExitCode)
	require.False(t, r.Restarted)
	close(h.told)
	_, err = box.Execute(ctx, "true")
	require.ErrorIs(t, err, sandbox.ErrLost)
	require.NoError(t, box.Close())
}
