package kubebox

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBox makes a box with everything that a namespace of the restricted Pod Security Standard
// admits.
func TestBox(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	var mu sync.Mutex
	said := map[string]bool{}
	b := newBox(t, Config{
		Cluster: c, ReadOnlyRoot: true, Dir: "/data", Env: []string{"A=$(B) c"}, CPUs: 0.5,
		Memory: 256 << 20, EphemeralStorage: 64 << 20,
		Mounts: []Mount{{Target: "/data"}, {Type: ConfigMap, Source: "kube-root-ca.crt",
			Target: "/ca"}}, Labels: map[string]string{"mine": "1"},
		Progress: func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			said[p.Status] = true
		},
	})
	require.Equal(t, "KubeBox", b.String())
	does(t, b, `echo "$(id -u):$(id -g) $PWD $A"`, "1000:1000 /data $(B) c\n")
	does(t, b, `cd /tmp && touch /tmp/a /data/b && ls /ca; touch /usr/a 2>/dev/null || echo read-only`, "ca.crt\nread-only\n")
	does(t, b, `pwd; ls /var/run/secrets/kubernetes.io 2>/dev/null; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status | tr -s '\t\n' '  '`,
		"/tmp\nCapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 ")
	mu.Lock()
	require.True(t, said["Scheduled"], "%v", said)
	mu.Unlock()

	core := kubetest.Shared(t).Core(t)
	pod, err := core.Pods(b.Namespace()).Get(t.Context(), b.PodName(), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, b.PodUID(), string(pod.UID))
	require.Equal(t, "Guaranteed", string(pod.Status.QOSClass))
	require.Equal(t, "1", pod.Labels["mine"])

	list, err := c.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, b.PodUID(), list[0].ID)

	n, err := c.Reap(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	require.ErrorContains(t, c.Prune(t.Context()), b.PodName())
	require.ErrorContains(t, b.Detach(), "with Keep")
}

// TestOutOfMemory checks that the kernel kills the program that uses up the memory, and that the
// box goes on. Config.Memory says where the kernel kills the whole pod instead.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		t.Skip("control groups of version 2: the kubelet has the kernel end the whole pod, which " +
			"TestLost shows")
	}
	b := newBox(t, Config{Cluster: cluster(t), Memory: 96 << 20})
	does(t, b, "X=1", "")
	r, err := b.Execute(t.Context(), `python3 -c 'x = bytearray(300 << 20)'`)
	require.NoError(t, err)
	require.Equal(t, 137, r.ExitCode)
	does(t, b, "echo $X", "1\n")
}

// TestCancelled checks that a New that is cancelled, or whose Progress panics, leaves no pod.
func TestCancelled(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no longer wanted")
	_, err := New(ctx, Config{Cluster: c, Image: testImage, Progress: func(Progress) {
		cancel(why)
	}})
	require.ErrorIs(t, err, why)
	require.NotErrorIs(t, err, sandbox.ErrLost)
	_, err = New(t.Context(), Config{Cluster: c, Image: testImage, Progress: func(Progress) {
		panic("oops")
	}})
	require.ErrorContains(t, err, "Config.Progress panicked: oops")
}
