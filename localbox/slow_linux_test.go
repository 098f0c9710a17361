package localbox

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/hostapi"
	"github.com/sandshell/sandshell/internal/hostapi/proc"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/shellbox"
)

// A slow host is one of a busy machine: three looks take longer than a second.
type slow struct{ *host }

func (s slow) Look(ctx context.Context, p hostapi.Process) (proc.Look, error) {
	time.Sleep(400 * time.Millisecond)
	return s.host.Look(ctx, p)
}

// TestStatusOfSlowLooks shows that Status says that a job waits, however long the looks take.
func TestStatusOfSlowLooks(t *testing.T) {
	t.Parallel()
	box, err := shellbox.New(t.Context(), slow{&host{}}, shellbox.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer box.Close()
	j, err := box.Background(t.Context(), "read -r x")
	require.NoError(t, err)
	r, err := j.Until(t.Context())
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State)
	r, err = j.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, sandbox.Waiting, r.State)
	require.Equal(t, sandbox.Line, r.Awaits)
}
