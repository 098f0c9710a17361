package kubetest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/kube"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

func TestMain(m *testing.M) {
	if os.Getenv("KUBETEST_TO_BE_KILLED") != "" {
		toBeKilled()
	}
	Main(m)
}

const long = 2 * time.Minute // against hanging, for each step

// TestCluster runs pods on two nodes, which reach each other. It kills a node and the API server,
// and starts them again.
func TestCluster(t *testing.T) {
	t.Parallel() // the tests mostly wait
	testenv.NeedsAll(t, "it starts two nodes; no other test stands in for it")
	sysctls := readSysctls(t)
	state := "" // "" if no cluster was started
	t.Cleanup(func() { require.Equal(t, sysctls, readSysctls(t)) })
	t.Cleanup(func() {
		if state != "" {
			require.Empty(t, traces(t, state))
		}
	})
	c := Start(t, 2, 8*time.Second)
	state = filepath.Dir(filepath.Dir(c.Kubeconfig))
	core := c.Core(t)
	ns := c.Namespace(t, nil)
	ctx := t.Context()
	for _, node := range []string{"node1", "node2"} {
		_, err := core.Pods(ns).Create(ctx, pod("on-"+node, node, "httpd", "-f", "-p", "8080", "-h",
			"/etc"), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	ip := map[string]string{}
	for _, node := range []string{"node1", "node2"} {
		p := c.pod(t, ns, "on-"+node, func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodRunning
		})
		ip[node] = p.Status.PodIP
	}
	require.NotEmpty(t, traces(t, state))
	for node, other := range map[string]string{"node1": "node2", "node2": "node1"} {
		t.Run("Pod/"+node, func(t *testing.T) {
			require.Equal(t, "on-"+node+"\n", c.exec(t, ns, "on-"+node, "hostname"))
			require.Equal(t, "on-"+other+"\n", c.exec(t, ns, "on-"+node, "wget", "-q", "-O", "-",
				"http://"+ip[other]+":8080/hostname"))
			// The API is reached as from any pod.
			require.Empty(t, c.exec(t, ns, "on-"+node, "nc", "-w", "5", "10.96.0.1", "443", "-e",
				"true"))
		})
	}
	t.Run("Restricted", func(t *testing.T) {
		_, err := core.Pods(c.Namespace(t, Restricted)).Create(ctx, pod("p", "", "true"),
			metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
	})
	t.Run("APIServer", func(t *testing.T) {
		c.Order(t, "kill", "apiserver")
		_, err := core.Nodes().Get(ctx, "node1", metav1.GetOptions{})
		require.Error(t, err)
		c.Order(t, "start", "apiserver")
		require.Eventually(t, func() bool {
			_, err := core.Nodes().Get(ctx, "node1", metav1.GetOptions{})
			return err == nil
		}, long, 50*time.Millisecond)
		require.Equal(t, "on-node1\n", c.exec(t, ns, "on-node1", "hostname"))
	})
	t.Run("Node", func(t *testing.T) {
		c.Order(t, "kill", "node2")
		// Package kube diagnoses the pod at each moment.
		c.pod(t, ns, "on-node2", func(p *corev1.Pod) bool {
			found := kube.Diagnose(p)
			require.Contains(t, []sandbox.LostCause{"", sandbox.LostNode}, found.Cause, found.Lost)
			if p.DeletionTimestamp != nil {
				require.Equal(t, sandbox.LostNode, found.Cause, found.Lost)
			}
			return p.DeletionTimestamp != nil
		})
		c.Order(t, "start", "node2")
		w, err := core.Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=node2"})
		require.NoError(t, err)
		until(t, w, func(n *corev1.Node) bool { return ready(n) && len(n.Spec.Taints) == 0 })
	})
}

// TestKilled kills a program that has started a cluster. The cluster ends, and nothing is left of
// it.
func TestKilled(t *testing.T) {
	t.Parallel() // the tests mostly wait
	testenv.NeedsAll(t, "it starts a cluster; no other test stands in for it")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "KUBETEST_TO_BE_KILLED=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	if reason, lacks := strings.CutPrefix(line, "lacks: "); lacks {
		child.Wait()
		usable(t, nil, lacksError(strings.TrimSpace(reason)))
	}
	state := filepath.Dir(filepath.Dir(strings.TrimSpace(line)))
	require.NotEmpty(t, traces(t, state))
	require.NoError(t, child.Process.Kill())
	child.Wait()
	require.Eventually(t, func() bool {
		return len(traces(t, state)) == 0
	}, long, 50*time.Millisecond)
}

func toBeKilled() {
	c, err := start(1, time.Minute)
	var lacks lacksError
	if errors.As(err, &lacks) {
		fmt.Println("lacks:", lacks)
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Kubeconfig)
	select {}
}

// traces returns what is left of the cluster with this directory: its files, its control groups,
// and the processes that run its programs or are in one of its mount namespaces. The cluster's
// interfaces and mounts exist only in those namespaces.
func traces(t *testing.T, state string) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{state, "/sys/fs/cgroup/*/sandshell-kube-" +
		filepath.Base(state), "/sys/fs/cgroup/sandshell-kube-" + filepath.Base(state)} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		all = append(all, found...)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	require.NoError(t, err)
	for _, p := range processes {
		mounts, _ := os.ReadFile(p) // the process may have ended
		if bytes.Contains(mounts, []byte(strings.TrimPrefix(state, "/"))) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(p), "cmdline"))
			all = append(all, string(command))
		}
	}
	return all
}

func readSysctls(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic",
		"kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward"} {
		b, err := os.ReadFile("/proc/sys/" + name)
		require.NoError(t, err)
		values[name] = string(b)
	}
	return values
}

func pod(name, node string, command ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "main", Image: "sandshell-busybox", ImagePullPolicy: corev1.PullNever,
				Command: command}}},
	}
}

// pod waits until is reports true for a pod, and returns the pod.
func (c *Cluster) pod(t *testing.T, ns, name string, is func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	w, err := c.Core(t).Pods(ns).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + name})
	require.NoError(t, err)
	return until(t, w, is)
}

// until returns the first object of a watch for which is reports true.
func until[T any](t *testing.T, w watch.Interface, is func(*T) bool) *T {
	t.Helper()
	defer w.Stop()
	var last any
	for late := time.After(long); ; {
		select {
		case event := <-w.ResultChan():
			last = event.Object
			if o, ok := last.(*T); ok && is(o) {
				return o
			}
			require.NotNil(t, last, "the watch has ended")
		case <-late:
			require.Failf(t, "it does not come", "last: %v", last)
		}
	}
}

func ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// exec runs a command in a pod, and returns what it printed.
func (c *Cluster) exec(t *testing.T, ns, pod string, command ...string) string {
	t.Helper()
	url := c.Core(t).RESTClient().Post().Namespace(ns).Resource("pods").Name(pod).SubResource(
		"exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true},
			scheme.ParameterCodec).URL()
	e, err := remotecommand.NewWebSocketExecutor(rest.CopyConfig(c.Config), "GET", url.String())
	require.NoError(t, err)
	var out, stderr bytes.Buffer
	require.NoError(t, e.StreamWithContext(t.Context(),
		remotecommand.StreamOptions{Stdout: &out, Stderr: &stderr}), "%s", &stderr)
	return out.String()
}
