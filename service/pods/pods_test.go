package pods

import (
	"context"
	"testing"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/place"
	"github.com/sandshell/sandshell/service/place/placetest"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/require"
)

// TestMain checks that the tests leave no goroutine behind.
func TestMain(m *testing.M) { kubetest.Main(m) }

// cluster returns a namespace of the test's own. At the test's end no pod may be left in it.
func cluster(t *testing.T) kubebox.Cluster {
	t.Helper()
	testenv.NeedsAll(t, "it needs a Kubernetes cluster; the tests of service on an engine stand "+
		"in for it")
	k := kubetest.Shared(t)
	c := kubebox.Cluster{Kubeconfig: k.Kubeconfig, Namespace: k.Namespace(t, kubetest.Restricted)}
	t.Cleanup(func() {
		boxes, err := c.List(context.Background())
		require.NoError(t, err)
		require.Empty(t, boxes, "left in the namespace")
		require.NoError(t, c.Prune(context.Background()))
	})
	return c
}

// TestPlace tests a Place whose account has only Role.
func TestPlace(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	c.Kubeconfig = kubetest.Shared(t).Account(t, c.Namespace, "only", Role)
	// User 1000 cannot write into /.
	spec := service.Spec{Config: sshbox.Config{Image: "sandshell-busybox", Network: "none",
		Dir: "/tmp"}}
	placetest.Run(t, spec, func(testing.TB) place.Place {
		return New(kubebox.Config{Cluster: c})
	})
}
