// Package kubetest gives tests a real Kubernetes cluster.
//
// If SANDSHELL_TEST_KUBECONFIG names a kubeconfig, the tests use that cluster. Otherwise the tests
// of a program share a cluster that this package starts (with package cluster, below this one) and
// [Main] ends. A test that breaks a cluster starts one of its own. If the machine cannot run a
// cluster, the tests skip with the reason, or fail if CI is true.
//
// The clusters that this package starts have no kube-proxy, DNS or registry, and enforce no
// NetworkPolicy. Pod Security admission works. The test images of the local Docker engine, such as
// "sandshell-test", are on every node, for the imagePullPolicy IfNotPresent.
package kubetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Env is the environment variable that names the kubeconfig of the cluster to use.
const Env = "SANDSHELL_TEST_KUBECONFIG"

// BoxdImage is an image that has this library's boxd as /boxd, and nothing else. The clusters that
// Shared and Start start have it.
const BoxdImage = "localhost/sandshell-boxd:1"

// A Cluster is a running cluster whose nodes have become ready.
type Cluster struct {
	Kubeconfig string       // the path of a kubeconfig whose user has all rights
	Config     *rest.Config // the contents of Kubeconfig
	program    *program     // nil if this package has not started the cluster
}

// program is "go run ./internal/test/kubetest/cluster". It ends when its input ends, so it ends
// even if this process is killed.
type program struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Reader
	log     bytes.Buffer // may be read once the program has ended
}

// A lacksError says what the machine lacks for a cluster.
type lacksError string

func (e lacksError) Error() string { return string(e) }

func start(nodes int, grace time.Duration) (*Cluster, error) {
	if runtime.GOOS != "linux" {
		return nil, lacksError("Linux")
	}
	p := &program{
		cmd: exec.Command("go", "run",
			"github.com/sandshell/sandshell/internal/test/kubetest/cluster",
			"-nodes", fmt.Sprint(nodes), "-grace", grace.String())}
	p.cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	p.cmd.Stderr = &p.log
	var err error
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.answers = bufio.NewReader(out)
	line, _ := p.answers.ReadString('\n')
	if reason, lacks := strings.CutPrefix(line, "lacks: "); lacks {
		p.stop()
		return nil, lacksError(strings.TrimSpace(reason))
	}
	path, there := strings.CutPrefix(strings.TrimSpace(line), "KUBECONFIG=")
	if !there {
		return nil, fmt.Errorf("start a cluster: %w", p.stop())
	}
	c, err := of(path)
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	c.program = p
	return c, nil
}

// stop ends the cluster and waits until it has.
func (p *program) stop() error {
	p.orders.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, p.log.String())
	}
	return nil
}

func of(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	return &Cluster{Kubeconfig: kubeconfig, Config: config}, err
}

// The cluster that this program's tests share.
var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Shared returns the cluster for tests that do not break it: that of SANDSHELL_TEST_KUBECONFIG, or
// one with a single node, which [Main] ends.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.once.Do(func() {
		if path := os.Getenv(Env); path != "" {
			shared.cluster, shared.err = of(path)
		} else {
			shared.cluster, shared.err = start(1, 50*time.Second)
		}
	})
	return usable(t, shared.cluster, shared.err)
}

// Start starts a cluster for one test, with 1 to 9 nodes, and ends it with the test. A node that
// has been silent for grace counts as lost. Its pods are evicted after half that time more.
// (Kubernetes' own defaults are 50 s and 300 s.)
func Start(t testing.TB, nodes int, grace time.Duration) *Cluster {
	t.Helper()
	c, err := start(nodes, grace)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, c.program.stop()) })
	}
	return usable(t, c, err)
}

func usable(t testing.TB, c *Cluster, err error) *Cluster {
	t.Helper()
	var lacks lacksError
	if errors.As(err, &lacks) && os.Getenv("CI") != "true" {
		t.Skip("this machine cannot run a Kubernetes cluster: it lacks " + lacks + "; " + Env +
			" may name the kubeconfig of another")
	}
	require.NoError(t, err)
	return c
}

// Order sends an order to a cluster that [Start] has started. verb is "kill", "start", "pause" or
// "resume". part is "apiserver", "controller-manager", "scheduler", "etcd", or a node: "node1" and
// so on. A paused node has no network. A killed node loses its containers and keeps its disk.
func (c *Cluster) Order(t testing.TB, verb, part string) {
	t.Helper()
	require.NotNil(t, c.program, "Order is for a cluster of Start's")
	_, err := fmt.Fprintln(c.program.orders, verb, part)
	require.NoError(t, err)
	answer, err := c.program.answers.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ok\n", answer)
}

// Core returns a client for pods, namespaces, nodes and so on.
func (c *Cluster) Core(t testing.TB) *typedv1.CoreV1Client {
	t.Helper()
	client, err := rest.HTTPClientFor(c.Config)
	require.NoError(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(client.Transport) })
	core, err := typedv1.NewForConfigAndClient(c.Config, client)
	require.NoError(t, err)
	return core
}

// Restricted are the labels of a namespace that admits only pods of the restricted Pod Security
// Standard.
var Restricted = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}

// Namespace makes a namespace for the test, with labels, which may be nil, and removes it when the
// test ends. The namespace has its default service account when Namespace returns.
func (c *Cluster) Namespace(t testing.TB, labels map[string]string) string {
	t.Helper()
	core := c.Core(t)
	ns, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "sandshell-test-", Labels: labels}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { // the cluster removes the contents, which may take longer than the test
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, core.Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}))
	})
	watch, err := core.ServiceAccounts(ns.Name).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watch.Stop()
	select {
	case <-watch.ResultChan(): // a new namespace has no other service account
	case <-time.After(time.Minute):
		t.Fatal("no service account after a minute: does a controller manager run?")
	}
	return ns.Name
}

// Stop ends the cluster that Shared has started, if there is one.
func Stop() error {
	if c := shared.cluster; c != nil && c.program != nil {
		return c.program.stop()
	}
	return nil
}

// Main is a TestMain that ends the shared cluster, and checks that the tests have left no goroutine
// behind.
func Main(m *testing.M) {
	status := m.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
