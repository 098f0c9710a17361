package e2bbox

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sandshell/sandshell/internal/test/e2btest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
)

// TestConformance runs the groups that depend on the connection to the box, against our own server
// of E2B's API. The others depend on boxd, which is the same in containers; they run nightly.
func TestConformance(t *testing.T) {
	t.Parallel()
	g := e2btest.Start(t, nil)
	groups := []string{"Run", "Network", "Life"}
	switch {
	case testenv.Full():
		groups = nil
	case testenv.All():
		groups = append(groups, "Interaction", "Files", "Output", "Background", "Concurrency",
			"User")
	}
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		// t's context is no use: the suite makes boxes in Cleanups, when it has ended.
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
		defer cancel()
		box, err := New(ctx, configOf(t, g))
		require.NoError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(sandboxtest.Groups(groups...))...)
}
