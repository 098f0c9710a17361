package kubebox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandshell/sandshell/internal/test/kubetest"
	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var scale = flag.Int("kubebox.scale", 0, "run TestScale with so many boxes; in make nightly it "+
	"is 200")

// TestScale makes many boxes at once, with 20 clients, on three nodes. The scheduler spreads them,
// the quota holds, and only the boxes on a node that fails are lost. docs/scale.md has the figures
// that it logs.
func TestScale(t *testing.T) {
	n := *scale
	if n == 0 {
		testenv.NeedsFull(t, "it takes minutes; TestBox and TestLost show one box each")
		n = 200
	}
	const clients = 20
	k := kubetest.Start(t, 3, 10*time.Second)
	ns := k.Namespace(t, kubetest.Restricted)
	core := k.Core(t)
	pods := func(n int) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(int64(n), resource.DecimalSI)}}
	}
	_, err := core.ResourceQuotas(ns).Create(t.Context(),
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "boxes"}, Spec: pods(n)},
		metav1.CreateOptions{})
	require.NoError(t, err)
	config := Config{Cluster: Cluster{Kubeconfig: k.Kubeconfig, Namespace: ns},
		Image: "sandshell-busybox", Memory: 64 << 20}

	before, memory, began := apiRequests(t, k), inUse(), time.Now()
	boxes := make([]*KubeBox, n)
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := client; i < n; i += clients {
				b, err := New(t.Context(), config)
				if err == nil {
					boxes[i] = b
					_, err = b.Execute(t.Context(), fmt.Sprint("echo ", i))
				}
				if err != nil {
					t.Errorf("box %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	made := time.Since(began)
	t.Cleanup(func() { // side by side: each takes the time of a pod's end
		var wg sync.WaitGroup
		for _, b := range boxes {
			if b != nil {
				wg.Go(func() { b.Close() })
			}
		}
		wg.Wait()
	})
	if t.Failed() {
		return
	}
	t.Logf("%d boxes by %d clients in %v; %.1f KiB a box in the client, %d goroutines in all; "+
		"requests to the API server, a box:\n%s",
		n, clients, made.Round(time.Millisecond), float64(inUse()-memory)/1024/float64(n),
		runtime.NumGoroutine(), perBox(before, apiRequests(t, k), n))

	_, err = New(t.Context(), config)
	var e *Error
	require.True(t, errors.As(err, &e) && e.Reason == Quota, "one more than the quota: %v", err)

	nodes, nodeOf := map[string]int{}, nodesOf(t, config.Cluster)
	require.Len(t, nodeOf, n)
	for _, node := range nodeOf {
		nodes[node]++
	}
	t.Log(nodes)
	for _, node := range []string{"node1", "node2", "node3"} {
		require.Greater(t, nodes[node], n/6, "the scheduler spreads them: %v", nodes)
	}

	const ready = 6
	// those of a node that is gone count until it is back
	more, err := json.Marshal(corev1.ResourceQuota{Spec: pods(n + 2*ready)})
	require.NoError(t, err)
	_, err = core.ResourceQuotas(ns).Patch(t.Context(), "boxes", types.MergePatchType, more,
		metav1.PatchOptions{})
	require.NoError(t, err)
	pool, err := NewPool(config, "scale", ready)
	require.NoError(t, err)
	defer pool.Close()
	require.Eventually(t, func() bool {
		return pool.Ready() == ready
	}, testenv.Limit, 50*time.Millisecond)
	nodeOf = nodesOf(t, config.Cluster)
	loseNode(t, k, boxes, nodeOf)
	refills(t, pool, ready, nodeOf)
}

// nodesOf returns the nodes of the boxes by their pods' UIDs.
func nodesOf(t *testing.T, c Cluster) map[string]string {
	t.Helper()
	list, err := c.List(t.Context())
	require.NoError(t, err)
	nodeOf := map[string]string{}
	for _, b := range list {
		nodeOf[b.ID] = b.Node
	}
	return nodeOf
}

// refills checks that a pool replaces its boxes that were on node3.
func refills(t *testing.T, pool *Pool, ready int, nodeOf map[string]string) {
	began, made := time.Now(), 0
	require.Eventually(t, func() bool {
		if pool.Ready() < ready {
			return false
		}
		made = 0
		for uid, node := range nodesOf(t, pool.config.Cluster) {
			if node != "node3" && nodeOf[uid] == "" {
				made++
			}
		}
		return made > 0
	}, testenv.Limit, 100*time.Millisecond, "the pool is filled again")
	t.Logf("the pool was filled again %v later, with %d new boxes",
		time.Since(began).Round(time.Millisecond), made)
	for range ready {
		b, err := pool.Get(t.Context(), Handover{})
		require.NoError(t, err)
		does(t, b, "echo here", "here\n")
		require.NotEqual(t, "node3", nodesOf(t, pool.config.Cluster)[b.PodUID()])
		require.NoError(t, b.Close())
	}
}

// loseNode kills node3. Its boxes are lost within 30 s, and the others go on.
func loseNode(t *testing.T, k *kubetest.Cluster, boxes []*KubeBox, nodeOf map[string]string) {
	began := time.Now()
	k.Order(t, "kill", "node3")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var last time.Duration
	for _, b := range boxes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
			defer cancel()
			_, err := b.Execute(ctx, ":")
			if nodeOf[b.PodUID()] == "node3" {
				if !errors.Is(err, sandbox.ErrLost) {
					t.Errorf("%s, whose node is gone: %v", b.PodName(), err)
				}
				mu.Lock()
				last = max(last, time.Since(began))
				mu.Unlock()
			} else if err != nil {
				t.Errorf("%s on another node: %v", b.PodName(), err)
			}
		})
	}
	wg.Wait()
	t.Logf("the last box of the lost node was known to be lost after %v",
		last.Round(time.Millisecond))
}

// inUse returns the memory of the heap and the stacks in bytes.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// apiRequests returns the API server's counts of requests and watch events, by verb and resource.
// They include those of the nodes and the controllers. The server counts an event's size once, even
// if several clients watch the same objects.
func apiRequests(t *testing.T, k *kubetest.Cluster) map[string]float64 {
	t.Helper()
	body, err := k.Core(t).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	counts := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
		metric, labels, _ := strings.Cut(lines.Text(), "{")
		labels, value, _ := strings.Cut(labels, "} ")
		field := func(name string) string {
			_, rest, _ := strings.Cut(labels, name+`="`)
			word, _, _ := strings.Cut(rest, `"`)
			return word
		}
		request := func() string {
			return strings.TrimSuffix(field("verb")+" "+field("resource")+"/"+field("subresource"),
				"/")
		}
		var kind string
		switch metric {
		case "apiserver_request_total": // those that have ended
			kind = request()
		case "apiserver_longrunning_requests": // and watches and execs that have not
			kind = "open " + request()
		case "apiserver_watch_events_total":
			kind = "watch events of " + field("kind")
		case "apiserver_watch_events_sizes_count":
			kind = "watch events of " + field("kind") + ", written"
		case "apiserver_watch_events_sizes_sum":
			kind = "watch events of " + field("kind") + ", bytes written"
		default:
			continue
		}
		count, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err)
		counts[kind] += count
	}
	return counts
}

// perBox returns a line for each kind of request that occurred at least once for every ten boxes.
func perBox(before, after map[string]float64, n int) string {
	var lines []string
	for kind, count := range after {
		if each := (count - before[kind]) / float64(n); each >= 0.1 {
			lines = append(lines, fmt.Sprintf("  %.2f %s", each, kind))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
