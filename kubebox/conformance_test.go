package kubebox

import (
	"context"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConformance runs what the way to the box makes different, and nightly what has boxd at work,
// which is the same in containers: Syntax, State, ShellEnd, Time, Zoo and Adversary ask nothing of
// a pod.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := Config{Cluster: cluster(t), Image: testImage}
	keepConnected(t, c.Cluster)
	groups := []string{"Interaction", "Run", "Files", "Network", "Life"}
	if testenv.Full() {
		groups = append(groups, "Output", "Background", "Concurrency", "User")
	}
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		// not t's: the suite makes boxes in Cleanups, too
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		box, err := New(ctx, c)
		require.NoError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(sandboxtest.Groups(groups...))...)
}

// keepConnected uses a connection to the API server until the test ends. All boxes of a program
// share one, which is closed when none of them uses it: a box that has dialed it may be gone
// before, and what reads from it would pass for what that box has left behind. Here no box dials
// it.
func keepConnected(t *testing.T, c Cluster) {
	t.Helper()
	cluster, err := c.open()
	require.NoError(t, err)
	used, err := cluster.Pods.Watch(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		used.Stop()
		cluster.Close()
	})
}
