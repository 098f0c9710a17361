package kubebox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/stretchr/testify/require"
)

// TestMain checks that the tests leave no goroutine behind. If actAs is set, the program is the one
// that TestKilledProgram kills.
func TestMain(m *testing.M) {
	if os.Getenv(actAs) != "" {
		act()
	}
	kubetest.Main(m)
}

const testImage = "sandshell-test"

// cluster returns a namespace of the test's own, which admits only pods of the restricted Pod
// Security Standard. At the test's end no pod may be left in it.
func cluster(t *testing.T) Cluster {
	t.Helper()
	return namespace(t, kubetest.Restricted)
}

// baseline is cluster for boxes of root.
func baseline(t *testing.T) Cluster {
	t.Helper()
	return namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
}

func namespace(t *testing.T, labels map[string]string) Cluster {
	t.Helper()
	testenv.NeedsAll(t, "it needs a Kubernetes cluster; internal/kube tests every day what needs "+
		"none")
	k := kubetest.Shared(t)
	c := Cluster{Kubeconfig: k.Kubeconfig, Namespace: k.Namespace(t, labels)}
	t.Cleanup(func() {
		boxes, err := c.List(context.Background())
		require.NoError(t, err)
		require.Empty(t, boxes, "left in the namespace")
		require.NoError(t, c.Prune(context.Background()))
	})
	return c
}

// newBox makes a box, and closes it when the test ends.
func newBox(t *testing.T, c Config) *KubeBox {
	t.Helper()
	if c.Image == "" {
		c.Image = testImage
	}
	b, err := New(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// does executes a command, and checks what it prints.
func does(t *testing.T, b *KubeBox, command, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	r, err := b.Execute(ctx, command)
	require.NoError(t, err)
	require.Equal(t, want, r.Output)
}

// podsAreHere skips a test that needs the pods to be on this machine.
func podsAreHere(t *testing.T) {
	t.Helper()
	if os.Getenv(kubetest.Env) != "" {
		t.Skip("the pods of the cluster of " + kubetest.Env + " are not on this machine")
	}
}

// boxd returns the directory of a box's boxd in this machine's /proc.
func boxd(t *testing.T, b *KubeBox) string {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, p := range processes {
		command, _ := os.ReadFile(p) // the process may have ended
		if bytes.HasSuffix(command, []byte("\x00"+b.host.pod.Box+"\x00")) &&
			bytes.Contains(command, []byte("\x00serve\x00")) {
			return filepath.Dir(p)
		}
	}
	require.Fail(t, "the pod's boxd is not among the processes of this machine", b.PodName())
	return ""
}
