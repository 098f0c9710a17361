package kubebox

import (
	"context"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/stretchr/testify/require"
)

// TestConformance runs what the way to the box makes different; what boxd does is the same in containers.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := Config{Cluster: cluster(t), Image: testImage}
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // not t's: the suite makes boxes in Cleanups, too
		defer cancel()
		box, err := New(ctx, c)
		require.NoError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(sandboxtest.Groups("Interaction", "Run", "Files", "Network", "Life"))...)
}
