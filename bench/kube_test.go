//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/kubebox"
	"github.com/sandshell/sandshell/sandbox"
)

// TestMain ends the cluster that the benchmarks share.
func TestMain(m *testing.M) {
	status := m.Run()
	if err := kubetest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// pods has a namespace and a pod that does nothing, in which client-go executes commands.
type pods struct {
	cluster kubebox.Cluster
	config  *rest.Config
	core    *typedv1.CoreV1Client
	pod     string
}

// startPod starts a pod. It is removed at the end of the benchmark.
func startPod(t testing.TB) *pods {
	t.Helper()
	k := kubetest.Shared(t)
	p := &pods{cluster: kubebox.Cluster{Kubeconfig: k.Kubeconfig, Namespace: k.Namespace(t, nil)},
		config: k.Config, core: k.Core(t)}
	var remove func()
	p.pod, remove = p.create(t)
	t.Cleanup(remove)
	return p
}

const podImage = "sandshell-test"

// create creates a pod as kubectl run does, and waits until it runs. The returned function removes
// it.
func (p *pods) create(t testing.TB) (name string, remove func()) {
	t.Helper()
	ctx := context.Background()
	pods := p.core.Pods(p.cluster.Namespace)
	none := int64(0)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				{Name: "main", Image: podImage, ImagePullPolicy: corev1.PullIfNotPresent,
					Command: []string{"sleep", "infinity"}}},
			TerminationGracePeriodSeconds: &none, RestartPolicy: corev1.RestartPolicyNever,
		},
	}, metav1.CreateOptions{})
	noError(t, err)
	watch, err := pods.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String()})
	noError(t, err)
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if now, ok := event.Object.(*corev1.Pod); ok && now.Status.Phase == corev1.PodRunning {
			return pod.Name, func() {
				noError(t, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}))
			}
		}
	}
	t.Fatal("the watch of a pod ended before it ran")
	return "", nil
}

// exec executes a command in the pod.
func (p *pods) exec(ctx context.Context, pod string, command []string,
	o remotecommand.StreamOptions) error {
	url := p.core.RESTClient().Post().Resource("pods").Namespace(p.cluster.Namespace).Name(
		pod).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Command: command, Stdin: o.Stdin != nil, Stdout: true, Stderr: o.Stderr != nil, TTY: o.Tty,
	}, scheme.ParameterCodec).URL()
	e, err := remotecommand.NewWebSocketExecutor(p.config, "GET", url.String())
	if err != nil {
		return err
	}
	return e.StreamWithContext(ctx, o)
}

func (p *pods) box(ctx context.Context) (sandbox.Sandbox, error) {
	return kubebox.New(ctx, kubebox.Config{Cluster: p.cluster, Image: podImage, User: "root"})
}

// A podTerminal is the streams of an exec.
type podTerminal struct {
	io.Reader
	io.Writer
	end func()
}

func (t podTerminal) Close() error {
	t.end()
	return nil
}

func (p *pods) terminal() (stream, error) {
	stdin, typed := io.Pipe()
	shown, stdout := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := p.exec(ctx, p.pod, []string{"sh", "-c",
			"stty -onlcr; exec " + strings.Join(shellArgs, " ")},
			remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Tty: true})
		stdout.CloseWithError(fmt.Errorf("the exec has ended: %w", err))
		stdin.CloseWithError(err)
	}()
	return podTerminal{shown, typed, func() {
		cancel()
		shown.Close()
		typed.Close()
		<-ended
	}}, nil
}

func (p *pods) run(script string, stdin io.Reader, stdout io.Writer) error {
	if stdout == nil {
		stdout = io.Discard
	}
	return p.exec(context.Background(), p.pod, []string{"sh", "-c", script},
		remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout})
}

// ready makes a pod, to the result of its first command.
func (p *pods) ready(t testing.TB) (remove func()) {
	t.Helper()
	pod, remove := p.create(t)
	var out bytes.Buffer
	noError(t, p.exec(context.Background(), pod, []string{"echo", "ready"},
		remotecommand.StreamOptions{Stdout: &out}))
	if out.String() != "ready\n" {
		t.Fatalf("an exec printed %q", &out)
	}
	return remove
}

// BenchmarkPoolOfPods gets a box from a pool, to the result of its first command. The floor patches
// a pod, as Get does.
func BenchmarkPoolOfPods(b *testing.B) {
	p := startPod(b)
	pool, err := kubebox.NewPool(kubebox.Config{Cluster: p.cluster, Image: podImage, User: "root"},
		"bench", 4)
	noError(b, err)
	defer pool.Close()
	var old *kubebox.KubeBox
	end := func() {
		if old != nil {
			noError(b, old.Close())
		}
		old = nil
	}
	defer end()
	patches := 0
	comparison{
		before: func() { // fills the pool, so that it makes no boxes during the measurement
			end()
			for pool.Ready() < 4 {
				time.Sleep(10 * time.Millisecond)
			}
		},
		floor: func() {
			patches++
			_, err := p.core.Pods(p.cluster.Namespace).Patch(context.Background(), p.pod,
				types.MergePatchType,
				fmt.Appendf(nil, `{"metadata": {"annotations": {"bench": "%d"}}}`, patches),
				metav1.PatchOptions{})
			noError(b, err)
		},
		ours: func() {
			old, err = pool.Get(context.Background(), kubebox.Handover{Env: []string{"A=1"}})
			noError(b, err)
			execute(b, old, "echo $A")
		},
		rounds: 12, maxMore: 50 * time.Millisecond,
	}.run(b)
}

var _ place = (*pods)(nil)
