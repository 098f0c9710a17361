package kubebox

import (
	"context"
	"testing"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConformance runs the groups that depend on the connection to the box. Nightly it also runs
// those that depend on boxd, which is the same in containers. Syntax, State, ShellEnd, Time, Zoo,
// Certainty and Adversary do not depend on the pod.
func TestConformance(t *testing.T) {
	t.Parallel()
	c := Config{Cluster: cluster(t), Image: testImage}
	keepConnected(t, c.Cluster)
	groups := []string{"Interaction", "Run", "Files", "Network", "Life"}
	if testenv.Full() {
		groups = append(groups, "Output", "Background", "Concurrency", "User")
	}
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		// t's context is no use: the suite makes boxes in Cleanups, when it has ended.
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Limit)
		defer cancel()
		box, err := New(ctx, c)
		require.NoError(t, err)
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(sandboxtest.Groups(groups...))...)
}

// keepConnected uses a connection to the API server until the test ends. All boxes of a program
// share one connection, which is closed when none uses it. If a box had dialed it, the goroutine
// that reads from it could outlive that box, and the suite would take it for a leak. With
// keepConnected no box dials.
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
